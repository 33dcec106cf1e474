/** Means of columns by cluster, and of the selected rows, in standard deviations from the overall mean. */

import { useMemo } from "preact/hooks";
import { shortened } from "../formatting";
import type { Result, Run } from "./api";
import { type Coded, type Labels, loadValues, MISSING } from "./arrays";
import { Scroll, useLoaded } from "./controls";
import { ClusterName } from "./filters";
import { Fragment } from "./fragment";
import type { Selection } from "./selection";

const STRONGEST = 2.5; // standard deviations of the strongest colour
const COLUMNS = 14;

export function Profiles({
  run,
  result,
  selection,
  labels,
}: {
  run: Run;
  result: Result;
  selection: Selection;
  labels: Labels;
}) {
  const { profile } = result;
  const columns = profile?.columns.slice(0, COLUMNS) ?? [];
  const { value: coded } = useLoaded(
    () => Promise.all(columns.map((name) => loadValues(run.key, name))),
    [run.key, columns.join("\n")],
  );
  const version = selection.version.value;
  const selected = useMemo(
    () => (coded && selection.active ? coded.map((column) => deviation(column, selection)) : null),
    [coded, version, labels],
  );
  if (!profile) return <p class="muted">There are no profiles for this kind of data.</p>;
  return (
    <>
      <Scroll label="Profiles">
        <table class="profile">
          <thead>
            <tr>
              <th>cluster</th>
              {columns.map((name) => (
                <th key={name} class="num">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {result.clusters.map(({ label }, i) => (
              <tr key={label}>
                <th scope="row">
                  <ClusterName name={run.names[label]!} color={run.colors[label]!} />
                </th>
                {columns.map((name, j) => (
                  <Cell key={name} z={profile.deviations[i]?.[j] ?? null} mean={profile.values[i]?.[j] ?? null} />
                ))}
              </tr>
            ))}
            {selected && (
              <tr class="selected-rows">
                <th scope="row">selected rows</th>
                {columns.map((name, j) => (
                  <Cell key={name} {...selected[j]!} />
                ))}
              </tr>
            )}
          </tbody>
        </table>
      </Scroll>
      <p class="muted">Means. Colour: standard deviations from the mean of all rows, blue below and orange above.</p>
      <Fragment path={`/api/runs/${run.id}/charts/profiles`} version={run.colors.join()} />
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

/** Mean of the selected rows from the bins of a histogram, and how far it is from that of all rows. */
function deviation({ codes, bounds }: Coded, selection: Selection): { z: number | null; mean: number | null } {
  if (!bounds) return { z: null, mean: null };
  const chosen = selection.counts(codes, 256);
  const all = new Float64Array(3);
  const part = new Float64Array(2);
  const every = new Uint32Array(256);
  for (let i = 0; i < codes.length; i++) every[codes[i]!]!++;
  for (let code = 0; code < Math.min(bounds.length - 1, MISSING); code++) {
    const middle = (bounds[code]! + bounds[code + 1]!) / 2;
    all[0]! += every[code]!;
    all[1]! += every[code]! * middle;
    all[2]! += every[code]! * middle * middle;
    part[0]! += chosen[code]!;
    part[1]! += chosen[code]! * middle;
  }
  if (!part[0] || !all[0]) return { z: null, mean: null };
  const mean = all[1]! / all[0];
  const spread = Math.sqrt(Math.max(0, all[2]! / all[0] - mean * mean));
  return { mean: part[1]! / part[0], z: spread ? (part[1]! / part[0] - mean) / spread : 0 };
}
