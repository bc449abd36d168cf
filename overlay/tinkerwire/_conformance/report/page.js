"use strict";
// Without this script the page shows everything, and prints what is open.
const form = document.getElementById("filter");
const items = [...document.querySelectorAll(".item")];
const texts = new Map(items.map((item) => [item, item.textContent.toLowerCase()]));

function apply() {
  const wanted = new FormData(form);
  const words = wanted.get("text").toLowerCase().split(/\s+/);
  let count = 0;
  for (const item of items) {
    const isShown =
      (!wanted.get("area") || item.parentElement.dataset.area === wanted.get("area")) &&
      (!wanted.get("level") || item.dataset.level === wanted.get("level")) &&
      (!wanted.get("outcome") || item.dataset.outcome === wanted.get("outcome")) &&
      words.every((word) => texts.get(item).includes(word));
    item.hidden = !isShown;
    count += isShown;
  }
  for (const section of document.querySelectorAll("section")) {
    section.hidden = !section.querySelector(".item:not([hidden])");
  }
  document.getElementById("shown").value = `${count} of ${items.length} shown`;
}

form.hidden = false;
form.addEventListener("input", apply);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(apply));
apply();

// A link to a requirement shows it, whatever the filter hides, and opens it.
function reveal() {
  const item = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!item || !item.classList.contains("item")) return;
  if (item.hidden) {
    form.reset();
    apply();
  }
  item.open = true;
  item.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();

// A printed page has all failures with their requests and responses.
let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll('.item[data-outcome="failed"], .item[data-outcome="failed"] details')];
  closed = closed.filter((details) => !details.open);
  for (const item of items) item.hidden &&= item.dataset.outcome !== "failed";
  for (const section of document.querySelectorAll("section")) section.hidden = !section.querySelector(".item:not([hidden])");
  for (const details of closed) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of closed) details.open = false;
  apply();
});
