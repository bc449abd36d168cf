"use strict";

const version = document.getElementById("version");
selectFromAddress(version, "version", 0);
// Redoc cannot replace its document, so another version is another address; the place in the page stays.
version.addEventListener("change", () => location.replace(`?version=${version.value}${location.hash}`));

loadData(`${version.value}/reference.js`, "reference")
  .then((reference) => {
    document.title += ` of version ${version.value}`;
    const files = [["openapi.yaml", "YAML"], ["openapi.json", "JSON"], ["openapi-3.0.json", "3.0"]];
    const options = {
      scrollYOffset: "header",
      downloadUrls: files.map(([file, title]) => ({ title, url: `${version.value}/${file}` })),
      requiredPropsFirst: true,
      jsonSampleExpandLevel: 3,
      theme: { typography: { fontFamily: "system-ui, sans-serif", headings: { fontFamily: "system-ui, sans-serif" } } },
    };
    Redoc.init(reference, options, document.getElementById("reference"), (error) => {
      if (error) showError(error);
      else document.getElementById("message").textContent = "";
    });
  })
  .catch(showError);
