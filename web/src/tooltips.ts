/** What a mark of a chart says, where the pointer or the focus is. */

import { html } from "./dom";

const REACHED = 300; // marks of a chart that keys go to

export function tooltips(): void {
  const tip = html("div", { class: "tip", role: "status", hidden: true });
  document.body.append(tip);
  const marked = (event: Event) => (event.target as Element | null)?.closest?.("[data-tip]") ?? null;
  const show = (event: Event) => {
    const mark = marked(event);
    if (mark) place(tip, mark);
    else tip.hidden = true;
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("focusout", () => {
    tip.hidden = true;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") tip.hidden = true;
  });
  tooltipsWithin(document);
}

/** Marks of charts that come later. */
export function tooltipsWithin(part: ParentNode): void {
  for (const mark of part.querySelectorAll('[data-tip=""]')) fromTitle(mark);
  for (const chart of part.querySelectorAll<Element>("svg, table")) reach(chart);
}

/** Without scripts the browser shows titles: here they would be a second tip. */
function fromTitle(mark: Element): void {
  const title = mark.querySelector("title");
  mark.setAttribute("data-tip", title?.textContent ?? "");
  title?.remove();
}

function place(tip: HTMLElement, mark: Element): void {
  tip.textContent = mark.getAttribute("data-tip");
  tip.hidden = false;
  const at = mark.getBoundingClientRect();
  const own = tip.getBoundingClientRect();
  const wide = document.documentElement.clientWidth;
  const left = Math.max(6, Math.min(wide - own.width - 6, at.left + at.width / 2 - own.width / 2));
  const above = at.top - own.height - 8;
  tip.style.left = `${left + window.scrollX}px`;
  tip.style.top = `${(above < 4 ? at.bottom + 8 : above) + window.scrollY}px`;
}

/** One stop of the tabulator a chart; arrows go from mark to mark. */
function reach(chart: Element): void {
  const marks = [...chart.querySelectorAll<HTMLElement | SVGElement>("[data-tip]")];
  if (!marks.length || marks.length > REACHED) return;
  if (chart.getAttribute("role") === "img") chart.setAttribute("role", "group");
  marks.forEach((mark, i) => {
    mark.setAttribute("tabindex", i ? "-1" : "0");
    if (mark instanceof SVGElement) {
      mark.setAttribute("role", "img");
      mark.setAttribute("aria-label", mark.getAttribute("data-tip") ?? "");
    }
  });
  chart.addEventListener("keydown", (given) => {
    const event = given as KeyboardEvent;
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const from = marks.indexOf(event.target as HTMLElement);
    const to = marks[from + (by ?? 0)];
    if (!by || from < 0 || !to) return;
    event.preventDefault();
    marks[from]!.setAttribute("tabindex", "-1");
    to.setAttribute("tabindex", "0");
    to.focus();
  });
}
