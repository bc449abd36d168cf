"use strict";

const LEVELS = {
  breaking: "clients of the old version fail",
  risky: "clients of the old version may notice",
  safe: "clients of the old version are not affected",
};
const SHOWN_OPERATIONS = 3;
const older = document.getElementById("old");
const newer = document.getElementById("new");
selectFromAddress(older, "old", 1);
selectFromAddress(newer, "new", 0);

function createElement(tag, text, className) {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  if (className) element.className = className;
  return element;
}

function renderOperations(names) {
  const text = names.slice(0, SHOWN_OPERATIONS).join(", ");
  if (names.length <= SHOWN_OPERATIONS) return createElement("p", `In ${text}`, "quiet");
  const details = createElement("details", "", "quiet");
  details.append(createElement("summary", `In ${text} and ${names.length - SHOWN_OPERATIONS} more`));
  details.append(createElement("p", names.slice(SHOWN_OPERATIONS).join(", ")));
  return details;
}

function renderChange(change, operations) {
  const article = createElement("article", "", change.level);
  const title = createElement("p", `${change.direction}: `);
  if (change.where) title.append(createElement("code", change.where), ": ");
  title.append(change.reason);
  article.append(title, renderOperations(change.operations.map((row) => operations[row])));
  if ("example" in change) {
    const validBefore = (change.level === "breaking") === (change.direction === "request");
    const text = validBefore ? "Valid before and not now" : "Valid now and not before";
    article.append(createElement("p", `${text}, as ${change.example_of}:`, "quiet"));
    article.append(createElement("pre", JSON.stringify(change.example, null, 1)));
  }
  return article;
}

/** Show the changes from the older to the newer of the two selected versions. */
function showChanges(table) {
  // The options are sorted from the newest version to the oldest.
  if (older.selectedIndex < newer.selectedIndex) [older.value, newer.value] = [newer.value, older.value];
  const [from, to] = [older.value, newer.value];
  history.replaceState(null, "", `?old=${from}&new=${to}`);
  const changes = (table.pairs[from]?.[to] ?? []).map((row) => table.changes[row]);
  document.getElementById("title").textContent = `Changes from ${from} to ${to}`;
  document.getElementById("message").textContent = changes.length ? "" : "No change.";
  const content = [];
  for (const [level, meaning] of Object.entries(LEVELS)) {
    const selected = changes.filter((change) => change.level === level);
    if (!selected.length) continue;
    content.push(createElement("h2", `${selected.length} ${level}: ${meaning}`));
    content.push(...selected.map((change) => renderChange(change, table.operations)));
  }
  document.getElementById("changes").replaceChildren(...content);
}

loadData("changes-data.js", "changes")
  .then((table) => {
    for (const select of [older, newer]) select.addEventListener("change", () => showChanges(table));
    showChanges(table);
  })
  .catch(showError);
