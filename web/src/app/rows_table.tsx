/** The rows of the table, or those that are selected: sorted, searched, page by page. */

import { useEffect, useState } from "preact/hooks";
import { plural } from "../dom";
import { get, query, type Rows, type Run, upload } from "./api";
import { Scroll, useCalm, useLoaded } from "./controls";
import { ClusterName } from "./filters";
import type { Selection } from "./selection";
import { go, place, table } from "./state";

const COUNT = 50;
const PATIENCE = 120; // milliseconds without a change, before rows are asked for
const EXTRA = { cluster: "cluster", silhouette: "silhouette", distance: "distance" };

interface Props {
  run: Run;
  selection: Selection;
  ring: (row: number | null) => void; // mark a row on the map
}

export function RowsTable({ run, selection, ring }: Props) {
  const { sort, search } = place.value;
  const version = useCalm(selection.version.value, PATIENCE);
  const sought = useCalm(search, PATIENCE);
  const [offset, setOffset] = useState(0);
  useEffect(() => setOffset(0), [version, sought, sort, run.id]);
  const asked = query({ run: run.id, offset, count: COUNT, sort, q: sought });
  const { value, error } = useLoaded(
    () => (selection.active ? upload<Rows>(`/api/rows?${asked}`, selection.bitset()) : get<Rows>(`/api/rows?${asked}`)),
    [asked, version, run.names.join("\n")],
  );
  const numbers = new Set(table.value!.columns.filter(({ kind }) => kind === "number").map(({ name }) => name));
  const head = (key: string, text: string, isNumber = false) => {
    const order = sort === key ? "ascending" : sort === `-${key}` ? "descending" : undefined;
    return (
      <th key={key} aria-sort={order} class={isNumber ? "num" : ""}>
        <button type="button" onClick={() => go({ sort: sort === key ? `-${key}` : sort === `-${key}` ? null : key })}>
          {text}
          <svg class="order" viewBox="0 0 8 8" aria-hidden="true">
            <path d="M4 1l3.500 6h-7z" />
          </svg>
        </button>
      </th>
    );
  };
  return (
    <div class="rows-table">
      <div class="table-bar">
        <input
          type="search"
          class="search"
          placeholder="Search in all columns"
          aria-label="Search in all columns"
          value={search}
          onInput={(event) => go({ search: event.currentTarget.value })}
        />
        {value && (
          <span class="pager" aria-live="polite">
            {value.total > COUNT &&
              `${(offset + 1).toLocaleString("en")}–${(offset + value.rows.length).toLocaleString("en")} of `}
            {plural(value.total, "row")}
            <button
              type="button"
              class="button"
              disabled={offset === 0}
              onClick={() => setOffset(Math.max(0, offset - COUNT))}
            >
              Previous
            </button>
            <button
              type="button"
              class="button"
              disabled={offset + COUNT >= value.total}
              onClick={() => setOffset(offset + COUNT)}
            >
              Next
            </button>
          </span>
        )}
      </div>
      {error && <p class="fault">{error}</p>}
      {value && (
        <Scroll label="Rows">
          <table class="data-rows" onMouseLeave={() => ring(null)}>
            <thead>
              <tr>
                <th>row</th>
                {Object.entries(EXTRA).map(([key, text]) => head(key, text, key !== "cluster"))}
                {value.columns.map((name) => head(name, name, numbers.has(name)))}
              </tr>
            </thead>
            <tbody>
              {value.rows.map(({ row, cells, cluster, silhouette, distance }) => (
                <tr key={row} onMouseEnter={() => ring(row)}>
                  <td class="muted">{row.toLocaleString("en")}</td>
                  <td>
                    {cluster !== null && cluster >= 0 ? (
                      <ClusterName
                        name={run.names[cluster] ?? String(cluster)}
                        color={run.colors[cluster] ?? "#9aa1ab"}
                      />
                    ) : (
                      <span class="muted">none</span>
                    )}
                  </td>
                  <td class="num">{silhouette?.toFixed(2) ?? ""}</td>
                  <td class="num">{distance?.toPrecision(3) ?? ""}</td>
                  {cells.map((cell, j) => (
                    <td
                      key={j}
                      class={`${cell === null ? "muted" : ""} ${numbers.has(value.columns[j]!) ? "num" : ""}`}
                    >
                      {cell ?? "missing"}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </div>
  );
}
