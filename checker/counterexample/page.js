"use strict";
// Everything but the state panel is in the page as it was written; this follows the chosen step.
const run = JSON.parse(document.getElementById("run").textContent);
const last = run.states.length - 1;
let chosen = -1;

function previousOf(index) {
  return index === 0 ? null : run.states[index - 1];
}

function cell(kind, text) {
  const made = document.createElement("td");
  made.className = kind;
  made.textContent = text;
  return made;
}

function row(place, value, before) {
  const made = document.createElement("tr");
  const shown = cell("value", value);
  if (before !== undefined && before !== value) {
    made.className = "changed";
    const was = document.createElement("span");
    was.className = "was";
    was.textContent = before;
    shown.prepend(was);
  }
  made.append(cell("place", place), shown);
  return made;
}

// Scrolls the timeline sideways alone: the page stays where the reader is.
function keepInView(step) {
  const frame = step.closest(".scroll");
  const inside = frame.getBoundingClientRect();
  const label = frame.querySelector(".label").getBoundingClientRect();
  const box = step.getBoundingClientRect();
  if (box.right > inside.right) frame.scrollLeft += box.right - inside.right + 4;
  else if (box.left < label.right) frame.scrollLeft -= label.right - box.left + 4;
}

function choose(index, scroll) {
  chosen = Math.min(Math.max(index, 0), last);
  for (const part of document.querySelectorAll("[data-state]")) {
    if (Number(part.dataset.state) === chosen) {
      part.setAttribute("aria-current", "step");
      if (scroll) part.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else {
      part.removeAttribute("aria-current");
    }
  }
  keepInView(document.querySelector(`.timeline [data-state="${chosen}"]`));
  for (const lane of document.querySelectorAll("[data-column]")) {
    lane.classList.toggle("on", Number(lane.dataset.column) === chosen);
  }
  const before = previousOf(chosen);
  const rows = run.places.map((place, i) =>
    row(place, run.states[chosen][i], before === null ? undefined : before[i]));
  document.getElementById("state").replaceChildren(...rows);
  document.getElementById("state-title").textContent = run.titles[chosen];
}

const MOVES = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.target.closest("details, pre")) return;
  if (event.key in MOVES) choose(chosen + MOVES[event.key], true);
  else if (event.key === "Home") choose(0, true);
  else if (event.key === "End") choose(last, true);
  else return;
  event.preventDefault();
});

document.addEventListener("click", (event) => {
  const copier = event.target.closest("[data-copy]");
  if (copier) {
    copy(copier);
    return;
  }
  const part = event.target.closest("[data-state]");
  if (part) choose(Number(part.dataset.state), false);
});

// A page opened from a file may not use the clipboard: then the text is selected instead.
function copy(button) {
  const source = document.getElementById(button.dataset.copy);
  const select = () => {
    const range = document.createRange();
    range.selectNodeContents(source);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
  };
  if (!navigator.clipboard) {
    select();
    return;
  }
  navigator.clipboard.writeText(source.textContent).then(() => {
    button.textContent = "Copied";
  }, select);
}

choose(last, false);
addEventListener("resize", () => choose(chosen, false));
