"use strict";
// Lines that come from each other light up together.
//
// A row of a pane says where it comes from: data-line, a line of the source, and data-ptx, one of
// the PTX; what belongs to a statement has data-lk-s. From each row one walks to the lines of
// the source, and from these to all rows that come from them.
(() => {
  const sections = [...document.querySelectorAll("main > section")];
  const buttons = [...document.querySelectorAll("nav button")];
  const columns = ["nest", "source", "ptx", "sass"];
  let current = sections.findIndex((section) => !section.hidden);
  let pinned = null;
  let lit = [];

  const indices = new WeakMap();
  function indexOf(section) {
    let index = indices.get(section);
    if (index) return index;
    index = { line: new Map(), ptx: new Map(), statement: new Map(), linesOf: new Map() };
    const put = (map, key, value) => {
      if (key === undefined) return;
      const known = map.get(key);
      if (known) known.push(value);
      else map.set(key, [value]);
    };
    for (const row of section.querySelectorAll(".lk-line")) {
      put(index.line, row.dataset.line, row);
      put(index.ptx, row.dataset.ptx, row);
      if (row.dataset.lkS !== undefined) put(index.linesOf, row.dataset.lkS, row.dataset.line);
    }
    for (const part of section.querySelectorAll("[data-lk-s]")) put(index.statement, part.dataset.lkS, part);
    indices.set(section, index);
    return index;
  }

  // The parts that light up with one, and those that come from the same line of the source.
  function relatives(part) {
    const index = indexOf(part.closest("main > section"));
    const { line, ptx } = part.dataset;
    const near = new Set();
    const same = new Set([part]);
    const statements = new Set();
    if (part.dataset.lkS !== undefined) statements.add(part.dataset.lkS);
    const isRow = part.classList.contains("lk-line");
    const lines = new Set(line === undefined ? [] : [line]);
    if (!isRow) for (const one of index.linesOf.get(part.dataset.lkS) ?? []) lines.add(one);
    const ownsLine = !isRow || part.closest(".lk-column").dataset.pane === "source";
    for (const one of lines)
      for (const row of index.line.get(one) ?? []) {
        const source = row.closest(".lk-column").dataset.pane === "source";
        if (source && row.dataset.lkS !== undefined) statements.add(row.dataset.lkS);
        (ownsLine || source ? same : near).add(row);
      }
    if (!ownsLine && ptx !== undefined) for (const row of index.ptx.get(ptx) ?? []) same.add(row);
    for (const one of statements)
      for (const other of index.statement.get(one) ?? [])
        if (!other.classList.contains("lk-line")) same.add(other);
    for (const one of same) near.delete(one);
    return { same: [...same], near: [...near] };
  }

  function light(part) {
    for (const one of lit) one.classList.remove("lk-is-lit", "lk-is-near");
    lit = [];
    if (!part) return;
    const { same, near } = relatives(part);
    for (const one of same) one.classList.add("lk-is-lit");
    for (const one of near) one.classList.add("lk-is-near");
    lit = [...same, ...near];
  }

  // Scroll up or down, never sideways, until a part of a pane is in sight.
  function bring(part, toTheMiddle) {
    const pane = part.closest(".lk-pane");
    const [inside, around] = [part.getBoundingClientRect(), pane.getBoundingClientRect()];
    const margin = toTheMiddle ? around.height / 2 : 2 * inside.height;
    if (inside.top < around.top + 2 * inside.height) pane.scrollTop += inside.top - around.top - margin;
    else if (inside.bottom > around.bottom) pane.scrollTop += inside.bottom - around.bottom + margin;
  }

  // Bring what belongs to a part into sight in the other panes.
  function reveal(part) {
    const mine = part.closest(".lk-column");
    const seen = new Set([mine]);
    for (const one of relatives(part).same) {
      const column = one.closest(".lk-column");
      if (!column || seen.has(column)) continue;
      seen.add(column);
      bring(one, true);
    }
  }

  function pin(part) {
    pinned?.classList.remove("lk-is-here");
    pinned = part && part === pinned ? null : part;
    pinned?.classList.add("lk-is-here");
    light(pinned);
    if (pinned) reveal(pinned);
  }

  const partOf = (target) =>
    target instanceof Element ? target.closest(".lk-line[data-line], .lk-line[data-ptx], [data-lk-s]") : null;
  const board = document.querySelector("main");
  board.addEventListener("pointerover", (event) => {
    if (!pinned) light(partOf(event.target));
  });
  board.addEventListener("pointerleave", () => {
    if (!pinned) light(null);
  });
  board.addEventListener("click", (event) => {
    const part = partOf(event.target);
    if (part && !event.target.closest("summary")) pin(part);
  });

  function show(position) {
    if (position < 0 || position >= sections.length) return;
    pin(null);
    sections[current].hidden = true;
    buttons[current]?.removeAttribute("aria-current");
    current = position;
    sections[current].hidden = false;
    buttons[current]?.setAttribute("aria-current", "step");
    buttons[current]?.scrollIntoView({ block: "nearest", inline: "nearest" });
    location.replace("#" + sections[current].id);
  }
  buttons.forEach((button, position) => button.addEventListener("click", () => show(position)));

  // Between two panes that stand side by side lies a grip, which takes width from one of them for
  // the other. Widths are shares, one to the panes of a name: each step shows them alike.
  const usual = { nest: 24, source: 38, ptx: 16, sass: 22 };
  const share = { ...usual };
  const least = 5;
  const grips = [];

  function drawGrips() {
    for (const name of columns) board.style.setProperty(`--lk-share-${name}`, share[name]);
    for (const { grip, before, after } of grips) {
      const left = before.findLast((column) => !column.hidden);
      grip.hidden = after.hidden || !left;
      if (grip.hidden) continue;
      const names = [left.dataset.pane, after.dataset.pane];
      const [one, other] = names.map((name) => share[name]);
      const percent = (part) => Math.round((100 * part) / (one + other));
      grip.setAttribute("aria-label", `between ${names.join(" and ")}`);
      grip.setAttribute("aria-valuemin", percent(least));
      grip.setAttribute("aria-valuemax", 100 - percent(least));
      grip.setAttribute("aria-valuenow", percent(one));
    }
  }

  // Move the border before a pane by a share of the whole; no pane gets narrower than the least.
  function moveBorder({ before, after }, by) {
    const left = before.findLast((column) => !column.hidden).dataset.pane;
    const right = after.dataset.pane;
    const step = Math.max(least - share[left], Math.min(share[right] - least, by));
    share[left] += step;
    share[right] -= step;
    drawGrips();
  }

  function addGrip(before, after) {
    const grip = document.createElement("div");
    grip.className = "lk-grip";
    grip.tabIndex = 0;
    grip.setAttribute("role", "separator");
    grip.setAttribute("aria-orientation", "vertical");
    grip.title = "drag, or ← →: wider, narrower; Home, End: as far as it goes; Enter: as it was";
    const border = { grip, before, after };
    grips.push(border);
    after.before(grip);
    const steps = { ArrowLeft: -2, ArrowRight: 2, Home: -100, End: 100 };
    const reset = () => {
      Object.assign(share, usual);
      drawGrips();
    };
    grip.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Enter") reset();
      else if (event.key in steps) moveBorder(border, steps[event.key]);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    grip.addEventListener("dblclick", reset);
    grip.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      grip.setPointerCapture(event.pointerId);
      event.preventDefault();
      grip.focus();
    });
    grip.addEventListener("pointermove", (event) => {
      if (!grip.hasPointerCapture(event.pointerId)) return;
      const panes = after.parentElement;
      const shown = [...panes.querySelectorAll(":scope > .lk-column:not([hidden])")];
      const whole = shown.reduce((sum, column) => sum + share[column.dataset.pane], 0);
      const box = grip.getBoundingClientRect();
      moveBorder(border, (whole * (event.clientX - (box.left + box.right) / 2)) / panes.clientWidth);
    });
  }

  for (const section of sections) {
    const all = [...section.querySelectorAll(".lk-column")];
    for (let n = 1; n < all.length; ++n) addGrip(all.slice(0, n), all[n]);
  }
  drawGrips();

  function toggle(pane) {
    const button = document.querySelector(`.lk-bar [data-toggle="${pane}"]`);
    if (!button) return;
    const off = button.getAttribute("aria-pressed") === "true";
    button.setAttribute("aria-pressed", String(!off));
    for (const column of document.querySelectorAll(`.lk-column[data-pane="${pane}"]`)) column.hidden = off;
    drawGrips();
  }
  for (const button of document.querySelectorAll(".lk-bar [data-toggle]"))
    button.addEventListener("click", () => toggle(button.dataset.toggle));

  function turn() {
    const root = document.documentElement;
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  }
  document.querySelector(".lk-bar [data-turn]").addEventListener("click", turn);

  // One row up or down in the pane that has the focus; in panes without rows the browser scrolls.
  function move(by) {
    const pane = document.activeElement?.closest(".lk-pane");
    const rows = pane ? [...pane.querySelectorAll(".lk-line:not(.lk-top)")] : [];
    if (!rows.length) return false;
    const here = pinned && pane.contains(pinned) ? rows.indexOf(pinned) : by > 0 ? -1 : rows.length;
    const next = rows[Math.min(Math.max(here + by, 0), rows.length - 1)];
    if (next !== pinned) pin(next);
    bring(next, false);
    return true;
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const toPane = columns[Number(event.key) - 1];
    const inPane = document.activeElement?.closest(".lk-pane");
    if (event.key === "[" || (event.key === "ArrowLeft" && !inPane)) show(current - 1);
    else if (event.key === "]" || (event.key === "ArrowRight" && !inPane)) show(current + 1);
    else if (event.key === "Escape") pin(null);
    else if (event.key === "d") turn();
    else if (event.key === "j" || event.key === "ArrowDown") {
      if (move(1)) event.preventDefault();
    } else if (event.key === "k" || event.key === "ArrowUp") {
      if (move(-1)) event.preventDefault();
    } else if (toPane) {
      sections[current].querySelector(`.lk-column[data-pane="${toPane}"]:not([hidden]) .lk-pane`)?.focus();
    }
  });

  buttons[current]?.scrollIntoView({ block: "nearest", inline: "nearest" });
  const asked = sections.findIndex((section) => "#" + section.id === location.hash);
  if (asked >= 0 && asked !== current) show(asked);
})();
