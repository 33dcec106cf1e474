/** Means of columns: of each cluster, by the code of the report, and of the selected rows. */

import { useMemo } from "preact/hooks";
import { shortened } from "../formatting";
import type { Result, Run } from "./api";
import { type Coded, loadValues, MISSING } from "./arrays";
import { Scroll, useLoaded } from "./controls";
import { Fragment } from "./fragment";
import { Selection } from "./selection";

const STRONGEST = 2.5; // standard deviations of the strongest colour
const COLUMNS = 14;

export function Profiles({ run, result, selection }: { run: Run; result: Result; selection: Selection }) {
  const { profile } = result;
  const columns = profile?.columns.slice(0, COLUMNS) ?? [];
  const { value: coded } = useLoaded(
    () => Promise.all(columns.map((name) => loadValues(run.key, name))),
    [run.key, columns.join("\n")],
  );
  const version = selection.version.value;
  const selected = useMemo(
    () =>
      coded && selection.active
        ? coded.map(({ codes, bounds }) => bounds && summary(selection.counts(codes, 256), bounds))
        : null,
    [coded, version],
  );
  const all = useMemo(() => coded?.map(overall) ?? [], [coded]);
  return (
    <>
      {selected && (
        <section class="panel">
          <h3>Selected rows</h3>
          <Scroll label="Means of the selected rows">
            <table class="profile">
              <thead>
                <tr>
                  {columns.map((name) => (
                    <th key={name} class="num">
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                <tr>
                  {columns.map((name, j) => (
                    <Cell
                      key={name}
                      mean={selected[j]?.mean ?? null}
                      z={deviation(selected[j]?.mean ?? null, all[j] ?? null)}
                    />
                  ))}
                </tr>
              </tbody>
            </table>
          </Scroll>
          <p class="muted">
            Means of the rows that are selected. Colours show the difference from the mean of all rows, as below.
          </p>
        </section>
      )}
      <Fragment path={`/api/runs/${run.id}/charts/profiles`} version={run.colors.join() + run.names.join()} />
    </>
  );
}

function Cell({ z, mean }: { z: number | null; mean: number | null }) {
  if (mean === null && z === null) return <td class="num muted">–</td>;
  const strength = Math.min(1, Math.abs(z ?? 0) / STRONGEST);
  const tone = (z ?? 0) < 0 ? "var(--low)" : "var(--high)";
  const style = { background: `color-mix(in srgb, ${tone} ${Math.round(70 * strength)}%, transparent)` };
  return (
    <td class="num" style={style} title={z === null ? undefined : `${z.toFixed(2)} s.d. from the mean`}>
      {mean === null ? z!.toFixed(2) : shortened(Number(mean.toPrecision(4)))}
    </td>
  );
}

interface Summary {
  mean: number;
  spread: number;
}

/** Mean and standard deviation of counts in bins. */
function summary(counts: Uint32Array, bounds: number[]): Summary | null {
  let [rows, sum, squares] = [0, 0, 0];
  for (let code = 0; code < Math.min(bounds.length - 1, MISSING); code++) {
    const middle = (bounds[code]! + bounds[code + 1]!) / 2;
    rows += counts[code]!;
    sum += counts[code]! * middle;
    squares += counts[code]! * middle * middle;
  }
  if (!rows) return null;
  return { mean: sum / rows, spread: Math.sqrt(Math.max(0, squares / rows - (sum / rows) ** 2)) };
}

function overall({ codes, bounds }: Coded): Summary | null {
  return bounds && summary(new Selection(codes.length).counts(codes, 256), bounds);
}

function deviation(mean: number | null, all: Summary | null): number | null {
  return mean === null || !all ? null : all.spread ? (mean - all.mean) / all.spread : 0;
}
