"use strict";

/** Load a script that sets window[name] to a packed value, and return the value. */
async function loadData(file, name) {
  await new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = file;
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${file} cannot be loaded; publish the contract again`));
    document.head.append(script);
  });
  const bytes = Uint8Array.from(atob(window[name]), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** Select the option that the parameter of the address names; without one, select the given index. */
function selectFromAddress(select, parameter, index) {
  select.selectedIndex = Math.min(index, select.options.length - 1);
  const wanted = new URLSearchParams(location.search).get(parameter);
  if ([...select.options].some((option) => option.value === wanted)) select.value = wanted;
}

function showError(error) {
  document.getElementById("message").textContent = String(error.message || error);
}
