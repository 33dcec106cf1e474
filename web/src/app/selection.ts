/**
 * Which of the displayed rows are selected. Every filter (a lasso, a range of a column, clusters) is one bit of a row, set
 * where the row fails it: a change of one filter is one pass over the rows, and what the other filters select is known.
 */

import { signal } from "@preact/signals";

const MOST = 16; // filters at a time

export class Selection {
  readonly version = signal(0); // grows with every change
  count: number; // of selected rows
  private readonly fails: Uint16Array;
  private readonly bits = new Map<string, number>();
  private list: Uint32Array | null = null;

  constructor(readonly rows: number) {
    this.fails = new Uint16Array(rows);
    this.count = rows;
  }

  get active(): boolean {
    return this.bits.size > 0;
  }

  has(name: string): boolean {
    return this.bits.has(name);
  }

  selects(row: number): boolean {
    return this.fails[row] === 0;
  }

  /** Select the rows whose code is allowed: `allowed` has an entry for each code. */
  byCode(name: string, codes: Uint8Array | Uint16Array, allowed: Uint8Array): void {
    const bit = this.bit(name);
    const { fails } = this;
    const rest = ~bit;
    let count = 0;
    for (let i = 0; i < fails.length; i++) {
      const value = allowed[codes[i]!] ? fails[i]! & rest : fails[i]! | bit;
      fails[i] = value;
      if (value === 0) count++;
    }
    this.changed(count);
  }

  /** Select the rows for which `test` is true. */
  byRow(name: string, test: (row: number) => boolean): void {
    const bit = this.bit(name);
    const { fails } = this;
    let count = 0;
    for (let i = 0; i < fails.length; i++) {
      const value = test(i) ? fails[i]! & ~bit : fails[i]! | bit;
      fails[i] = value;
      if (value === 0) count++;
    }
    this.changed(count);
  }

  remove(name: string): void {
    const bit = this.bits.get(name);
    if (bit === undefined) return;
    this.bits.delete(name);
    const { fails } = this;
    let count = 0;
    for (let i = 0; i < fails.length; i++) {
      fails[i] = fails[i]! & ~bit;
      if (fails[i] === 0) count++;
    }
    this.changed(count);
  }

  clear(): void {
    if (!this.active) return;
    this.bits.clear();
    this.fails.fill(0);
    this.changed(this.rows);
  }

  /** Number of rows by code, of those that all filters but `except` select. */
  counts(codes: Uint8Array | Uint16Array, size: number, except = ""): Uint32Array {
    const counts = new Uint32Array(size);
    const { fails } = this;
    const own = this.bits.get(except);
    if (!this.active) {
      for (let i = 0; i < codes.length; i++) counts[codes[i]!]!++;
    } else if (own === undefined) {
      const selected = this.selected();
      for (let i = 0; i < selected.length; i++) counts[codes[selected[i]!]!]!++;
    } else {
      for (let i = 0; i < codes.length; i++) if ((fails[i]! & ~own) === 0) counts[codes[i]!]!++;
    }
    return counts;
  }

  /** The selected rows, listed once for all counts of a change. */
  private selected(): Uint32Array {
    if (this.list) return this.list;
    const { fails } = this;
    const list = new Uint32Array(this.count);
    for (let i = 0, to = 0; i < fails.length; i++) if (fails[i] === 0) list[to++] = i;
    this.list = list;
    return list;
  }

  /** One bit a row, the lowest first. */
  bitset(): Uint8Array<ArrayBuffer> {
    const bits = new Uint8Array(Math.ceil(this.rows / 8));
    for (let i = 0; i < this.rows; i++) if (this.fails[i] === 0) bits[i >> 3]! |= 1 << (i & 7);
    return bits;
  }

  private bit(name: string): number {
    const known = this.bits.get(name);
    if (known !== undefined) return known;
    const used = [...this.bits.values()].reduce((all, bit) => all | bit, 0);
    for (let i = 0; i < MOST; i++) {
      if (used & (1 << i)) continue;
      this.bits.set(name, 1 << i);
      return 1 << i;
    }
    throw new Error(`at most ${MOST} filters at a time`);
  }

  private changed(count: number): void {
    this.count = count;
    this.list = null;
    this.version.value++;
  }
}
