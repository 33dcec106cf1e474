/** Names of clusters as buttons that hide and show them; with a search where they are many. */

import type { MapData } from "./data";
import { html, swatch } from "./dom";

const MANY = 30;

export class Legend {
  readonly elements: HTMLElement[] = [];
  private readonly hidden = new Set<number>();
  private readonly chips: HTMLButtonElement[];
  private readonly all = html("button", { type: "button", class: "button hidden" }, "Show all clusters");

  constructor(
    data: MapData,
    private readonly changed: () => void,
  ) {
    const named = data.names.map((name, j) => ({ name, color: data.colors[j]! }));
    if (data.noise) named.push({ name: "no cluster", color: data.noise });
    this.chips = named.map(({ name, color }, j) => this.chip(j, name, color));
    if (this.chips.length < 2) return;
    this.all.addEventListener("click", () => this.set(new Set()));
    const group = html(
      "div",
      { class: "chips", role: "group", "aria-label": "Clusters shown" },
      ...this.chips,
      this.all,
    );
    if (this.chips.length > MANY) this.elements.push(this.search(named.map(({ name }) => name)));
    this.elements.push(group);
  }

  shows(cluster: number): boolean {
    return !this.hidden.has(cluster);
  }

  private chip(j: number, name: string, color: string): HTMLButtonElement {
    const made = html("button", { type: "button", class: "chip", "aria-pressed": "true" }, swatch(color), name);
    made.addEventListener("click", () => {
      const hidden = new Set(this.hidden);
      if (!hidden.delete(j)) hidden.add(j);
      this.set(hidden);
    });
    return made;
  }

  private set(hidden: Set<number>): void {
    this.hidden.clear();
    for (const j of hidden) this.hidden.add(j);
    this.chips.forEach((chip, j) => {
      chip.setAttribute("aria-pressed", String(this.shows(j)));
    });
    this.all.classList.toggle("hidden", hidden.size === 0);
    this.changed();
  }

  private search(names: string[]): HTMLElement {
    const field = html("input", {
      type: "search",
      class: "search",
      placeholder: "Find a cluster",
      "aria-label": "Find a cluster",
    });
    field.addEventListener("input", () => {
      const sought = field.value.trim().toLowerCase();
      this.chips.forEach((chip, j) => {
        chip.classList.toggle("hidden", !names[j]!.toLowerCase().includes(sought));
      });
    });
    return field;
  }
}
