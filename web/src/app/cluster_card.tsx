/** One cluster: its name and colour, its rule, what sets it apart, typical and untypical rows. */

import { useEffect, useState } from "preact/hooks";
import { type ClusterDetail, type Distribution, editionOf, get, type Rows, type Run, send } from "./api";
import { Fault, percent, useLoaded, valueText } from "./controls";
import { RowList } from "./row_list";
import { attempt, message, refresh } from "./state";

export function ClusterCard({ run, label }: { run: Run; label: number }) {
  const { value, error } = useLoaded(
    () => get<ClusterDetail>(`/api/runs/${run.id}/clusters/${label}`),
    [editionOf(run), label],
  );
  return (
    <div class="cluster-card">
      <Edit run={run} label={label} />
      {error && <p class="fault">{error}</p>}
      {value && <Details cluster={value} color={run.colors[label]!} />}
    </div>
  );
}

function Edit({ run, label }: { run: Run; label: number }) {
  const [name, setName] = useState("");
  useEffect(() => setName(run.names[label]!), [run.names[label]]); // undo changes it, too
  const edit = async (body: object, text: string) => {
    const answer = await attempt(`cluster:${label}`, () => send("POST", `/api/runs/${run.id}/edit`, body));
    if (answer) message.value = text;
    await refresh();
  };
  return (
    <form
      class="edit"
      onSubmit={(event) => {
        event.preventDefault();
        const whole = name.replace(/\p{Surrogate}/gu, ""); // the limit of the field can cut a character in two
        void edit({ rename: { [label]: whole } }, `Cluster renamed to ${whole}.`);
      }}
    >
      <label>
        Name
        <input
          type="text"
          class="search"
          value={name}
          maxLength={80}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="button" disabled={name === run.names[label]}>
        Rename
      </button>
      <label>
        Colour
        <input
          type="color"
          value={run.colors[label]}
          onChange={(event) => void edit({ recolor: { [label]: event.currentTarget.value } }, "Colour changed.")}
        />
      </label>
      <button type="button" class="button" onClick={() => void edit({ recolor: { [label]: null } }, "Colour changed.")}>
        Reset colour
      </button>
      <Fault field={`cluster:${label}`} />
    </form>
  );
}

function Details({ cluster, color }: { cluster: ClusterDetail; color: string }) {
  const { rule, stands_out_by: contrasts, distributions, typical, untypical } = cluster;
  return (
    <>
      <p>
        <strong>{cluster.rows.toLocaleString("en")} rows</strong> ({percent(cluster.share)})
        {cluster.silhouette !== null && `, mean silhouette ${cluster.silhouette.toFixed(2)}`}
      </p>
      {rule && (
        <p class="rule">
          <code>{rule.text}</code>
          <span class="muted">
            {" "}
            {percent(rule.precision)} of the rows that meet this rule are in the cluster; it covers{" "}
            {percent(rule.coverage)} of the cluster.
          </span>
        </p>
      )}
      {contrasts.length > 0 && (
        <ul class="contrasts">
          {contrasts.map(({ column, deviation, share, overall }) => (
            <li key={column}>
              <strong>{column}</strong>{" "}
              {deviation !== null
                ? `${deviation >= 0 ? "+" : "\u2212"}${Math.abs(deviation).toFixed(1)} s.d. from the mean`
                : ""}
              {deviation === null && share !== null && `${percent(share)} here, ${percent(overall ?? 0)} overall`}
            </li>
          ))}
        </ul>
      )}
      <div class="distributions">
        {distributions.slice(0, 12).map((one) => (
          <Shape key={one.column} distribution={one} color={color} />
        ))}
      </div>
      <div class="grid">
        <Examples title="Typical rows" rows={typical} />
        <Examples title="Untypical rows" rows={untypical} />
      </div>
    </>
  );
}

/** Shares of values in the cluster, before those of all other rows. */
function Shape({ distribution, color }: { distribution: Distribution; color: string }) {
  const { column, cluster, rest } = distribution;
  const [inside, outside] = [cluster, rest].map((counts) => {
    const total = Math.max(
      1,
      counts.reduce((sum, count) => sum + count, 0),
    );
    return counts.map((count) => count / total);
  }) as [number[], number[]];
  const most = Math.max(1e-9, ...inside, ...outside);
  const d = (shares: number[]) =>
    `M0,40${shares.map((share) => `V${(40 - (38 * share) / most).toFixed(1)}h1`).join("")}V40Z`;
  const ends =
    "labels" in distribution
      ? [distribution.labels[0] ?? "", distribution.labels.at(-1) ?? ""]
      : [valueText(distribution.low), valueText(distribution.high)];
  return (
    <figure class="shape">
      <figcaption title={column}>{column}</figcaption>
      <svg
        viewBox={`0 0 ${Math.max(1, cluster.length)} 40`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${column} in this cluster and in all other rows`}
      >
        <path class="all" d={d(outside)} />
        <path d={d(inside)} fill={color} fill-opacity="0.75" />
      </svg>
      <div class="ends muted">
        <span>{ends[0]}</span>
        <span>{ends[1]}</span>
      </div>
    </figure>
  );
}

function Examples({ title, rows }: { title: string; rows: Rows }) {
  return (
    <div>
      <h3>{title}</h3>
      <RowList label={title} rows={rows} most={5} />
    </div>
  );
}
