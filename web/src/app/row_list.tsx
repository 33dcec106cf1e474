/** Rows of the table as they are, with what is said about each of them first. */

import type { ComponentChildren } from "preact";
import type { Row, Rows } from "./api";
import { Scroll } from "./controls";

interface Props {
  label: string;
  rows: Rows;
  most?: number; // rows that are shown
  facts?: { title: string; of: (row: Row) => ComponentChildren }[];
}

export function RowList({ label, rows, most = 50, facts = [] }: Props) {
  return (
    <Scroll label={label}>
      <table class="data-rows">
        <thead>
          <tr>
            <th>row</th>
            {[...facts.map(({ title }) => title), ...rows.columns].map((name) => (
              <th key={name}>{name}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.rows.slice(0, most).map((row) => (
            <tr key={row.row}>
              <td class="muted">{row.row.toLocaleString("en")}</td>
              {facts.map(({ title, of }) => (
                <td key={title}>{of(row)}</td>
              ))}
              {row.cells.map((cell, j) => (
                <td key={j} class={cell === null ? "muted" : ""}>
                  {cell ?? "missing"}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}
