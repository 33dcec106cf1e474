/** A map with its tools: which axes, moved or selected in, the row under the pointer, a picture to save. */

import { useEffect, useRef, useState } from "preact/hooks";
import { plural } from "../dom";
import { get, query, type Rows, type Run } from "./api";
import { type Labels, loadLabels, loadMap, type Points } from "./arrays";
import { Atlas, type Tool } from "./atlas";
import { IconButton, Select, useCalm, useLoaded } from "./controls";
import { savePicture, saveVector } from "./picture";
import type { Selection } from "./selection";
import { go, type MapKind, place, preparation, shown, table } from "./state";

const KINDS: Record<MapKind, string> = { axes: "Principal axes", columns: "Two columns", neighbours: "Neighbour map" };
const TOOLS: [Tool, string][] = [
  ["move", "Move the map"],
  ["lasso", "Select rows with a lasso"],
  ["box", "Select rows in a box"],
];
const PATIENCE = 50; // milliseconds on a row, before its values are asked for
const CELLS = 9; // of a row, beside the pointer
const ABOUT =
  "Map of the rows. Arrow keys move it, plus and minus change its scale, zero shows all. Enter selects the rows in view, Escape ends the selection.";

interface MapPanelProps {
  run?: Run | null;
  labels?: Labels | null; // in place of those of the run
  names?: string[];
  colors?: string[];
  hidden?: Set<number>;
  selection?: Selection | null;
  emphasis?: Uint8Array | null;
  onPick?: (label: number) => void;
  onAtlas?: (atlas: Atlas | null) => void;
  tools?: boolean; // whether there is a bar of tools
  label?: string;
  centers?: [number, number][] | null; // of a fit that runs
}

/** The map as the address of the page names it. */
function usePoints(): { value: Points | null; error: string | null } {
  const { kind, x, y } = place.value;
  const key = preparation.value?.key ?? "";
  const features = featureNames();
  const [across, up] = [x ?? features[0] ?? null, y ?? features[1] ?? features[0] ?? null];
  return useLoaded(() => (table.value ? loadMap(key, kind, across, up) : null), [key, kind, across, up]);
}

function featureNames(): string[] {
  const columns = table.value?.columns ?? [];
  return columns.filter((column) => column.role === "feature" && column.as !== "category").map(({ name }) => name);
}

export function useLabels(run: Run | null): Labels | null {
  return useLoaded(() => (run ? loadLabels(run) : null), [run?.id, run?.status, run?.sizes.length]).value;
}

export function MapPanel({ tools = true, ...props }: MapPanelProps) {
  const { value: points, error } = usePoints();
  const run = props.run === undefined ? shown.value : props.run;
  const own = useLabels(props.labels === undefined ? run : null);
  const labels = props.labels === undefined ? own : props.labels;
  const [tool, setTool] = useState<Tool>("move");
  const [isOutlined, setOutlined] = useState(true);
  const [hovered, setHovered] = useState<{ position: number; x: number; y: number } | null>(null);
  const [atlas, setAtlas] = useState<Atlas | null>(null);
  const host = useRef<HTMLDivElement>(null);
  const pick = useRef<(position: number) => void>(() => {});
  pick.current = (position) => {
    const label = labels?.labels[position];
    if (label !== undefined) props.onPick?.(label);
  };
  useEffect(() => {
    if (!points || !host.current) return;
    const made = new Atlas(points, {
      hover: (position, x, y) => setHovered(position === null ? null : { position, x, y }),
      pick: (position) => pick.current(position),
    });
    made.stage.element.setAttribute("aria-label", props.label ?? ABOUT);
    host.current.append(made.stage.element);
    made.open();
    setAtlas(made);
    props.onAtlas?.(made);
    return () => {
      made.close();
      props.onAtlas?.(null);
    };
  }, [points]);
  const names = props.names ?? run?.names ?? [];
  const colors = props.colors ?? run?.colors ?? [];
  useEffect(
    () => atlas?.colour(names.length ? labels : null, names, colors),
    [atlas, labels, names.join("\n"), colors.join()],
  );
  useEffect(() => atlas?.show(props.hidden ?? new Set(), isOutlined), [atlas, props.hidden, isOutlined]);
  useEffect(() => atlas?.select(props.selection ?? null), [atlas, props.selection]);
  useEffect(() => atlas?.emphasise(props.emphasis ?? null), [atlas, props.emphasis]);
  useEffect(() => atlas?.follow(props.centers ?? null), [atlas, props.centers]);
  useEffect(() => {
    if (!atlas) return;
    atlas.tool = tool;
    atlas.stage.element.dataset.tool = tool;
  }, [atlas, tool]);
  return (
    <div class="map-panel">
      {tools && (
        <div class="bar map-bar">
          <MapChoice />
          <span class="buttons push">
            {props.selection &&
              TOOLS.map(([name, label]) => (
                <IconButton
                  key={name}
                  label={label}
                  icon={name}
                  pressed={tool === name}
                  onClick={() => setTool(name)}
                />
              ))}
            {names.length > 0 && (
              <IconButton
                label="Show ellipses of two standard deviations"
                icon="ring"
                pressed={isOutlined}
                onClick={() => setOutlined(!isOutlined)}
              />
            )}
            <IconButton label="Magnify" icon="plus" onClick={() => atlas?.view.zoom(0.7)} />
            <IconButton label="Make smaller" icon="minus" onClick={() => atlas?.view.zoom(1 / 0.7)} />
            <IconButton label="Show all" icon="reset" onClick={() => atlas?.view.reset()} />
            <SaveMenu atlas={atlas} />
          </span>
        </div>
      )}
      {error && <p class="fault">{error}</p>}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the map in it has the focus and its own role */}
      <div
        class="map-host"
        ref={host}
        onKeyDown={(event) => {
          if (event.key === "Enter" && props.selection) atlas?.selectView();
          else if (event.key === "Escape") props.selection?.clear();
        }}
      >
        {hovered && points && (
          <HoverTip
            points={points}
            labels={labels}
            run={run}
            names={names}
            colors={colors}
            {...hovered}
            isRight={hovered.x > host.current!.clientWidth / 2}
          />
        )}
      </div>
      {points && <p class="map-note muted">{noteOf(points)}</p>}
    </div>
  );
}

function noteOf({ header, rows }: Points): string {
  const all = table.value?.rows ?? header.m;
  const parts = [
    rows ? `${header.m.toLocaleString("en")} of ${plural(all, "row")}, a random sample` : plural(all, "row"),
    header.share === null ? null : `${Math.round(100 * header.share)}% of the variance`,
    header.beyond ? `${plural(header.beyond, "row")} beyond the border` : null,
    header.missing ? `${plural(header.missing, "row")} not shown` : null,
    header.note || null,
  ];
  return parts.filter((part) => part !== null).join(" · ");
}

function MapChoice() {
  const { kind, x, y } = place.value;
  const features = featureNames();
  const axis = (label: string, value: string | null, name: "x" | "y") => (
    <Select
      label={label}
      hideLabel
      value={value ?? ""}
      options={features}
      onChange={(chosen) => go({ [name]: chosen })}
    />
  );
  return (
    <>
      <Select
        label="Map"
        hideLabel
        value={kind}
        options={Object.entries(KINDS).map(([value, text]) => ({
          value,
          text,
          disabled: value === "columns" && features.length < 2,
        }))}
        onChange={(value) => go({ kind: value as MapKind })}
      />
      {kind === "columns" && axis("Horizontal axis", x ?? features[0] ?? null, "x")}
      {kind === "columns" && axis("Vertical axis", y ?? features[1] ?? null, "y")}
    </>
  );
}

function SaveMenu({ atlas }: { atlas: Atlas | null }) {
  return (
    <>
      <button
        type="button"
        class="button"
        disabled={!atlas}
        onClick={() => atlas && void savePicture(atlas)}
        aria-label="Save the map as PNG"
      >
        PNG
      </button>
      <button
        type="button"
        class="button"
        disabled={!atlas}
        onClick={() => atlas && saveVector(atlas)}
        aria-label="Save the map as SVG"
      >
        SVG
      </button>
    </>
  );
}

interface HoverProps {
  points: Points;
  labels: Labels | null;
  run: Run | null;
  names: string[];
  colors: string[];
  position: number;
  x: number;
  y: number;
  isRight: boolean; // of the middle of the map
}

/** The row under the pointer: its cluster at once, its values as soon as the server has sent them. */
function HoverTip({ points, labels, run, names, colors, position, x, y, isRight }: HoverProps) {
  const row = points.rows?.[position] ?? position;
  const asked = useCalm(row, PATIENCE);
  const { value } = useLoaded(
    () => get<Rows>(`/api/rows?${query({ rows: asked, run: run?.id, count: 1 })}`),
    [asked, run?.id],
  );
  const label = labels?.labels[position];
  const found = value?.rows[0]?.row === row ? value.rows[0] : null;
  const name = label === undefined ? null : (names[label] ?? "no cluster");
  const style = { left: `${x}px`, top: `${y}px` };
  return (
    <div class={`row-tip ${isRight ? "left" : ""}`} style={style} role="tooltip">
      <div class="head">
        {label !== undefined && <span class="dot" style={{ background: colors[label] ?? "#9aa1ab" }} />}
        row {row.toLocaleString("en")}
        {name !== null && ` · ${/^\d+$/.test(name) ? `cluster ${name}` : name}`}
      </div>
      {found && (
        <dl>
          {value!.columns.slice(0, CELLS).map((column, j) => (
            <div key={column}>
              <dt>{column}</dt>
              <dd>{found.cells[j] ?? "missing"}</dd>
            </div>
          ))}
        </dl>
      )}
    </div>
  );
}
