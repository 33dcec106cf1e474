/** The tree of a hierarchy, with a cut that is dragged. */

import { useEffect, useRef, useState } from "preact/hooks";
import { plural } from "../dom";
import { shortened } from "../formatting";
import { get, type Run, send, type Tree } from "./api";
import { Fault, useLoaded } from "./controls";
import { attempt, message, refresh } from "./state";

const [WIDTH, HEIGHT, TOP, BOTTOM, LEFT] = [900, 300, 12, 26, 8];

export function Dendrogram({ run }: { run: Run }) {
  const { value: tree, error } = useLoaded(() => get<Tree>(`/api/runs/${run.id}/tree`), [run.id]);
  if (error) return <p class="muted">{error}</p>;
  if (!tree) return <p class="muted">Loading…</p>;
  return <Cuttable key={run.id} run={run} tree={tree} />;
}

function Cuttable({ run, tree }: { run: Run; tree: Tree }) {
  const heights = tree.heights;
  const [k, setK] = useState(tree.k_now);
  const chart = useRef<SVGSVGElement>(null);
  const isDragged = useRef(false);
  useEffect(() => setK(tree.k_now), [tree]);
  const right = Math.max(1, ...tree.x.flat());
  const most = tree.max || 1;
  const x = (value: number) => LEFT + (value / right) * (WIDTH - 2 * LEFT);
  const y = (value: number) => TOP + (1 - value / most) * (HEIGHT - TOP - BOTTOM);
  const between = (clusters: number) => {
    const above = clusters === 1 ? most * 1.04 : heights[clusters - 2]!;
    return (above + (heights[clusters - 1] ?? 0)) / 2;
  };
  const most_k = heights.length + 1;
  const height = between(k);
  const cut = async (clusters: number) => {
    if (clusters === tree.k_now) return;
    await attempt("cut", () => send("POST", `/api/runs/${run.id}/cut`, { k: clusters }));
    message.value = `Cut into ${plural(clusters, "cluster")}.`;
    await refresh();
  };
  const follow = (event: PointerEvent): number => {
    const box = chart.current!.getBoundingClientRect();
    const at = ((event.clientY - box.top) / box.height) * HEIGHT;
    const value = Math.max(0, (1 - (at - TOP) / (HEIGHT - TOP - BOTTOM)) * most);
    const clusters = Math.min(most_k, 1 + heights.filter((one) => one > value).length);
    setK(clusters);
    return clusters;
  };
  return (
    <div class="dendrogram">
      <p>
        <strong>{plural(k, "cluster")}</strong>{" "}
        <span class="muted">
          cut at height {shortened(Number(height.toPrecision(3)))}. Drag the line, or use the arrow keys and Enter.
        </span>
      </p>
      <svg
        ref={chart}
        class="chart tree"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        aria-label="Dendrogram"
        onPointerDown={(event) => {
          isDragged.current = true;
          chart.current!.setPointerCapture(event.pointerId);
          follow(event);
        }}
        onPointerMove={(event) => isDragged.current && follow(event)}
        onPointerUp={(event) => {
          isDragged.current = false;
          void cut(follow(event));
        }}
      >
        {tree.x.map((xs, i) => {
          const d = xs.map((value, j) => `${x(value).toFixed(1)},${y(tree.y[i]![j]!).toFixed(1)}`).join("L");
          const isAbove = Math.max(...tree.y[i]!) > height;
          return <path key={i} class={isAbove ? "merge above" : "merge"} d={`M${d}`} />;
        })}
        {tree.names.length <= 40 &&
          tree.names.map((name, i) => (
            <text
              key={i}
              class="leaf"
              x={x(right * ((i + 0.5) / tree.names.length))}
              y={HEIGHT - 8}
              text-anchor="middle"
            >
              {name.length > 8 ? `${name.slice(0, 7)}…` : name}
            </text>
          ))}
        <g
          class="cut"
          role="slider"
          tabindex={0}
          aria-label="Cut of the dendrogram"
          aria-orientation="vertical"
          aria-valuemin={1}
          aria-valuemax={most_k}
          aria-valuenow={k}
          aria-valuetext={plural(k, "cluster")}
          onKeyDown={(event) => {
            const by = { ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1 }[event.key];
            if (by) {
              event.preventDefault();
              setK((now) => Math.max(1, Math.min(most_k, now + by)));
            } else if (event.key === "Enter") void cut(k);
          }}
        >
          <line class="grip" x1={0} x2={WIDTH} y1={y(height)} y2={y(height)} />
          <line class="line" x1={0} x2={WIDTH} y1={y(height)} y2={y(height)} />
        </g>
      </svg>
      <Fault field="cut" />
    </div>
  );
}
