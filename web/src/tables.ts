/** Tables that are sorted by a click on a column's head, searched, and turned page by page where they are long. */

import { html, plural, svg } from "./dom";

const PAGE = 30;

class Table {
  private readonly body: HTMLTableSectionElement;
  private readonly given: HTMLTableRowElement[];
  private rows: HTMLTableRowElement[];
  private readonly size: number;
  private readonly count = html("span", {});
  private readonly back = html("button", { type: "button", class: "button" }, "Previous");
  private readonly next = html("button", { type: "button", class: "button" }, "Next");
  private page = 0;
  private sought = "";

  constructor(private readonly table: HTMLTableElement) {
    this.body = table.tBodies[0]!;
    this.given = [...this.body.rows];
    this.rows = this.given;
    this.size = Number(table.dataset.page) || PAGE;
    const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
    heads.forEach((head, column) => {
      this.sortable(head, heads, column);
    });
    if (this.given.length > this.size) this.paged();
    this.show();
  }

  private sortable(head: HTMLTableCellElement, heads: HTMLTableCellElement[], column: number): void {
    const arrow = svg(
      "svg",
      { class: "order", viewBox: "0 0 8 8", "aria-hidden": "true" },
      svg("path", { d: "M4 1l3.5 6h-7z" }),
    );
    const press = html("button", { type: "button" }, ...head.childNodes, arrow);
    head.replaceChildren(press);
    press.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      this.sort(column, down ? -1 : 1);
    });
  }

  private sort(column: number, sign: number): void {
    const keys = new Map(this.given.map((row) => [row, key(row.cells[column])]));
    this.rows = [...this.given].sort((a, b) => compared(keys.get(a)!, keys.get(b)!, sign));
    this.body.append(...this.rows);
    this.page = 0;
    this.show();
  }

  private paged(): void {
    const field = html("input", {
      type: "search",
      class: "search",
      placeholder: "Search",
      "aria-label": "Search this table",
    });
    field.addEventListener("input", () => {
      this.sought = field.value.trim().toLowerCase();
      this.page = 0;
      this.show();
    });
    for (const [press, by] of [
      [this.back, -1],
      [this.next, 1],
    ] as const) {
      press.addEventListener("click", () => {
        this.page += by;
        this.show();
      });
    }
    const pager = html("span", { class: "pager", "aria-live": "polite" }, this.count, this.back, this.next);
    const before = this.table.closest(".scroll") ?? this.table;
    before.before(html("div", { class: "table-bar" }, field, pager));
  }

  private show(): void {
    const found = this.rows.filter((row) => !this.sought || row.textContent?.toLowerCase().includes(this.sought));
    const first = this.page * this.size;
    const shown = new Set(found.slice(first, first + this.size));
    for (const row of this.rows) row.classList.toggle("hidden", !shown.has(row));
    const range = shown.size < found.length ? `${first + 1}\u2013${first + shown.size} of ` : "";
    this.count.textContent = range + plural(found.length, "row");
    this.back.disabled = this.page === 0;
    this.next.disabled = first + this.size >= found.length;
  }
}

/** A number where there is one; what is empty comes last. */
function key(cell: HTMLTableCellElement | undefined): number | string | null {
  const text = (cell?.dataset.value ?? cell?.textContent ?? "").trim();
  const number = Number(text.replace(/[,%\s]/g, "").replace("\u2212", "-"));
  return text === "" ? null : Number.isNaN(number) ? text : number;
}

function compared(a: number | string | null, b: number | string | null, sign: number): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * String(a).localeCompare(String(b), "en", { numeric: true });
}

export function tables(part: ParentNode = document): void {
  for (const table of part.querySelectorAll<HTMLTableElement>("table.sortable")) new Table(table);
}
