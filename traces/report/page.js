"use strict";
// The page is whole without this: it adds the filter, and keys that go from one entity to the next.
const entities = [...document.querySelectorAll(".entity")];
const filter = document.getElementById("filter");
const shown = document.getElementById("shown");

function narrow() {
  const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const entity of entities) {
    const text = entity.dataset.text;
    entity.hidden = !wanted.every((word) => text.includes(word));
    if (!entity.hidden) count += 1;
  }
  shown.textContent = wanted.length ? `${count} of ${entities.length}` : "";
}

// The entity named in the address is opened, so that links to it show it.
function openNamed() {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!named || !named.matches(".entity")) return;
  if (named.hidden) {
    filter.value = "";
    narrow();
  }
  named.open = true;
  named.querySelector("summary").focus({ preventScroll: true });
  named.scrollIntoView({ block: "start" });
}

// The refused event is the last column of a timeline: it is in view when the entity is opened.
for (const entity of entities) {
  entity.addEventListener("toggle", () => {
    const frame = entity.querySelector(".scroll");
    if (frame && entity.open) frame.scrollLeft = frame.scrollWidth;
  });
}

function go(by) {
  const visible = entities.filter((entity) => !entity.hidden);
  if (!visible.length) return;
  const now = visible.indexOf(document.activeElement.closest(".entity"));
  const next = now < 0 ? (by > 0 ? 0 : visible.length - 1) : now + by;
  const target = visible[Math.min(Math.max(next, 0), visible.length - 1)];
  const summary = target.querySelector("summary");
  summary.focus({ preventScroll: true });
  target.scrollIntoView({ block: "nearest" });
}

// Where the summary has the focus, Enter and Space open it by themselves.
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.target === filter) {
    if (event.key === "Escape") {
      filter.value = "";
      narrow();
      filter.blur();
    }
    return;
  }
  if (event.key === "j") go(1);
  else if (event.key === "k") go(-1);
  else if (event.key === "/" && filter) filter.focus();
  else return;
  event.preventDefault();
});

if (filter) {
  filter.addEventListener("input", narrow);
  document.querySelector(".tools").hidden = false;
}
addEventListener("hashchange", openNamed);
openNamed();
