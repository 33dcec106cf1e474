/** Parts of a page of which one is shown at a time, chosen by its name; without scripts, they follow each other. */

import { html } from "./dom";

const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

class Tabs {
  private readonly tabs: HTMLButtonElement[];

  constructor(
    place: HTMLElement,
    private readonly panels: HTMLElement[],
  ) {
    this.tabs = panels.map((panel, i) => this.tab(panel, i));
    const list = html("div", { class: "live tabs", role: "tablist", "aria-label": place.dataset.tabs! }, ...this.tabs);
    list.addEventListener("keydown", (event) => {
      const to = (this.tabs.indexOf(event.target as HTMLButtonElement) + (STEPS[event.key] ?? 0)) % panels.length;
      if (!(event.key in STEPS)) return;
      event.preventDefault();
      this.show(to < 0 ? panels.length - 1 : to);
      this.tabs.at(to)!.focus();
    });
    place.prepend(list);
    this.show(0);
  }

  private tab(panel: HTMLElement, i: number): HTMLButtonElement {
    const name = panel.querySelector("h3")?.textContent ?? "";
    const made = html("button", { type: "button", class: "button", role: "tab", "aria-controls": panel.id }, name);
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-label", name);
    made.addEventListener("click", () => this.show(i));
    return made;
  }

  private show(chosen: number): void {
    this.tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === chosen));
      tab.tabIndex = i === chosen ? 0 : -1;
    });
    this.panels.forEach((panel, i) => {
      panel.classList.toggle("hidden", i !== chosen);
    });
  }
}

export function tabs(part: ParentNode = document): void {
  for (const place of part.querySelectorAll<HTMLElement>("[data-tabs]")) {
    new Tabs(place, [...place.children] as HTMLElement[]);
  }
}
