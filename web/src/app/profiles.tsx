/** Means of columns: of the selected rows, and of each cluster by the code of the report. */

import { plural } from "../dom";
import { type Run, type SelectedMean, upload, type Value } from "./api";
import { percent, Scroll, useCalm, useLoaded, valueText } from "./controls";
import { Fragment } from "./fragment";
import type { Selection } from "./selection";

const STRONGEST = 2; // standard deviations of the strongest colour, as in the profiles of clusters
const PATIENCE = 120; // milliseconds without a change, before means are asked for

export function Profiles({ run, selection }: { run: Run; selection: Selection }) {
  selection.version.value;
  return (
    <>
      {selection.active && <Selected run={run} selection={selection} />}
      <Fragment run={run} chart="profiles" />
    </>
  );
}

function Selected({ run, selection }: { run: Run; selection: Selection }) {
  const version = useCalm(selection.version.value, PATIENCE);
  const { value, error } = useLoaded(
    () => upload<{ rows: number; columns: SelectedMean[] }>(`/api/runs/${run.id}/means`, selection.bitset()),
    [run.id, version],
  );
  if (error) return <p class="fault">{error}</p>;
  if (!value) return null;
  return (
    <section class="panel">
      <h3>Selected rows</h3>
      <Scroll label="Means of the selected rows">
        <table class="profile">
          <thead>
            <tr>
              <th scope="col">column</th>
              <th scope="col" class="num">
                {plural(value.rows, "selected row")}
              </th>
              <th scope="col" class="num">
                all rows
              </th>
              <th scope="col" class="num">
                missing in selection
              </th>
            </tr>
          </thead>
          <tbody>
            {value.columns.map((one) => (
              <Line key={`${one.column}\n${one.value}`} one={one} />
            ))}
          </tbody>
        </table>
      </Scroll>
      <p class="muted">
        Means of numbers and dates, and shares of categories, without missing values. Colours show the difference from
        the mean of all rows of the table, in standard deviations.
      </p>
    </section>
  );
}

function Line({ one: { column, value, kind, mean, overall, deviation, missing } }: { one: SelectedMean }) {
  const z = deviation ?? 0;
  const strength = Math.round(70 * Math.min(1, Math.abs(z) / STRONGEST));
  const style = {
    background: `color-mix(in srgb, var(${z < 0 ? "--low" : "--high"}) ${strength}%, transparent)`,
  };
  const about = deviation === null ? undefined : `${z.toFixed(2)} s.d. from the mean of all rows`;
  return (
    <tr>
      <th scope="row">{value === undefined ? column : `${column} = ${value}`}</th>
      <td class="num" style={style} title={about}>
        {textOf(mean, kind)}
      </td>
      <td class="num">{textOf(overall, kind)}</td>
      <td class="num muted">{missing ? missing.toLocaleString("en") : ""}</td>
    </tr>
  );
}

function textOf(mean: Value | null, kind: SelectedMean["kind"]): string {
  if (mean === null) return "–";
  return kind === "share" && typeof mean === "number" ? percent(mean) : valueText(mean);
}
