/** Parts that all pages are made of. */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { ICONS } from "../dom";
import { shortened } from "../formatting";
import type { Value } from "./api";
import { faults, setFault } from "./state";

const MORE_ICONS = {
  ...ICONS,
  undo: "M6.5 3 2 7l4.5 4V8.4c3.4 0 5.4 1 7 3.6-.3-4-2.700-6.300-7-6.500z",
  redo: "M9.500 3 14 7l-4.500 4V8.400c-3.400 0-5.400 1-7 3.600.3-4 2.700-6.300 7-6.500z",
  lasso:
    "M8 2c3.600 0 6.500 1.900 6.500 4.400S11.600 10.800 8 10.800c-.5 0-1 0-1.400-.1a2 2 0 0 1-1.600 2.300c.1.500-.1 1-.7 1.600l-1-.9c.200-.3.300-.5.300-.8A1.900 1.900 0 0 1 3 9.600C2 8.800 1.500 7.700 1.500 6.400 1.500 3.900 4.400 2 8 2zm0 1.500c-2.800 0-5 1.300-5 2.900 0 .9.4 1.600 1.100 2.200a2 2 0 0 1 2.200.6c.5.100 1.100.100 1.700.100 2.800 0 5-1.300 5-2.900S10.800 3.500 8 3.500z",
  box: "M2 2h4v1.600H3.600V6H2zM10 2h4v4h-1.600V3.600H10zM2 10h1.600v2.400H6V14H2zM12.400 10H14v4h-4v-1.600h2.400z",
  move: "M8 1l2.500 2.800H8.800v3.400h3.400V5.500L15 8l-2.800 2.500V8.800H8.800v3.400h1.700L8 15l-2.500-2.800h1.700V8.800H3.800v1.700L1 8l2.800-2.500v1.700h3.400V3.800H5.500z",
  close:
    "M3.500 2.400 8 6.900l4.500-4.500 1.100 1.100L9.100 8l4.500 4.500-1.100 1.100L8 9.100l-4.500 4.500-1.100-1.100L6.900 8 2.400 3.500z",
  download: "M7 2h2v5h2.700L8 11 4.300 7H7zM2.500 12h11v1.800h-11z",
  history:
    "M8 2a6 6 0 1 1-5.700 4.200l1.500.5A4.400 4.400 0 1 0 5 4.800L6.500 6.300H2V1.800l1.800 1.800A6 6 0 0 1 8 2zm-.8 2.600h1.500v3.200l2.300 1.400-.8 1.300-3-1.900z",
  upload: "M8 2l3.700 4H9v5H7V6H4.300zM2.500 12h11v1.800h-11z",
  ring: "M8 3.500c3.600 0 6.500 2 6.500 4.500s-2.900 4.500-6.500 4.500S1.500 10.500 1.500 8 4.400 3.500 8 3.500zm0 1.600C5.300 5.100 3.100 6.400 3.100 8S5.300 10.900 8 10.900 12.900 9.600 12.900 8 10.700 5.100 8 5.100z",
  stop: "M3.500 3.500h9v9h-9z",
};

type IconName = keyof typeof MORE_ICONS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg viewBox="0 0 16 16" aria-hidden="true" class="glyph">
      <path d={MORE_ICONS[name]} />
    </svg>
  );
}

interface IconButtonProps {
  label: string;
  icon: IconName;
  onClick: () => void;
  pressed?: boolean;
  disabled?: boolean;
  main?: boolean;
}

export function IconButton({ label, icon, onClick, pressed, disabled = false, main = false }: IconButtonProps) {
  return (
    <button
      type="button"
      class={`button icon ${main ? "main" : ""}`}
      aria-label={label}
      title={label}
      aria-pressed={pressed}
      disabled={disabled}
      onClick={onClick}
    >
      <Icon name={icon} />
    </button>
  );
}

export function Swatch({ color }: { color: string }) {
  return (
    <svg class="swatch" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
      <rect width="10" height="10" rx="2.5" fill={color} />
    </svg>
  );
}

/** What went wrong, beside the control that caused it. */
export function Fault({ field }: { field: string }) {
  const text = faults.value[field];
  if (text === undefined) return null;
  return (
    <p class="fault" role="alert" id={`fault-${field}`}>
      <span>{text}</span>
      <button type="button" class="plain" aria-label="Close this message" onClick={() => setFault(field, null)}>
        <Icon name="close" />
      </button>
    </p>
  );
}

interface SelectProps {
  label: string;
  value: string;
  options: readonly (string | { value: string; text: string; disabled?: boolean })[];
  onChange: (value: string) => void;
  field?: string;
  hideLabel?: boolean;
  disabled?: boolean;
}

export function Select({ label, value, options, onChange, field, hideLabel = false, disabled = false }: SelectProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id} class={hideLabel ? "unseen" : ""}>
        {label}
      </label>
      <select
        id={id}
        class="choice"
        value={value}
        disabled={disabled}
        aria-invalid={field !== undefined && faults.value[field] !== undefined}
        onChange={(event) => onChange(event.currentTarget.value)}
      >
        {options.map((option) => {
          const {
            value: key,
            text,
            disabled: off,
          } = typeof option === "string" ? { value: option, text: option } : option;
          return (
            <option key={key} value={key} disabled={off ?? false} selected={key === value}>
              {text}
            </option>
          );
        })}
      </select>
      {field !== undefined && <Fault field={field} />}
    </div>
  );
}

/** What a promise gave; what it gave before is shown until there is something new. */
export function useLoaded<T>(
  load: () => Promise<T> | null,
  inputs: unknown[],
): { value: T | null; error: string | null } {
  const [state, setState] = useState<{ value: T | null; error: string | null }>({ value: null, error: null });
  useEffect(() => {
    const promise = load();
    if (!promise) {
      setState({ value: null, error: null });
      return;
    }
    let isOver = false;
    promise.then(
      (value) => isOver || setState({ value, error: null }),
      (error: Error) => isOver || setState({ value: null, error: error.message }),
    );
    return () => {
      isOver = true;
    };
  }, inputs);
  return state;
}

/** A value once it has stayed the same for so many milliseconds. */
export function useCalm<T>(value: T, patience: number): T {
  const [calm, setCalm] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setCalm(value), patience);
    return () => clearTimeout(timer);
  }, [value, patience]);
  return calm;
}

/** An element that plain code fills; `make` returns what undoes it. */
interface PlaceProps {
  class: string;
  make: (element: HTMLElement) => (() => void) | undefined;
  inputs: unknown[];
}

export function Place({ make, inputs, class: name }: PlaceProps) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => make(element.current!), inputs);
  return <div ref={element} class={name} />;
}

/** What may be wider or longer than its place. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
    <section class="scroll" tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}

export function Section({
  title,
  children,
  aside,
}: {
  title: string;
  children: ComponentChildren;
  aside?: ComponentChildren;
}) {
  return (
    <section class="group">
      <h2>
        {title}
        {aside}
      </h2>
      {children}
    </section>
  );
}

/** Move the focus in a list by arrow keys: one stop of the tab key for all of it. */
export function rove(event: KeyboardEvent & { currentTarget: HTMLElement }, selector = "[data-stop]"): void {
  const by = {
    ArrowDown: 1,
    ArrowRight: 1,
    ArrowUp: -1,
    ArrowLeft: -1,
    Home: Number.NEGATIVE_INFINITY,
    End: Number.POSITIVE_INFINITY,
  }[event.key];
  const stops = [...event.currentTarget.querySelectorAll<HTMLElement>(selector)];
  const from = stops.indexOf(event.target as HTMLElement);
  if (by === undefined || from < 0) return;
  event.preventDefault();
  const to = stops[Math.max(0, Math.min(stops.length - 1, from + by))]!;
  for (const stop of stops) stop.tabIndex = stop === to ? 0 : -1;
  to.focus();
}

export function valueText(value: Value): string {
  return typeof value === "string" ? value : shortened(value);
}

export function percent(share: number): string {
  const value = 100 * share;
  const isExact = value === 0 || value === 100 || (value >= 10 && value <= 99);
  return `${value.toFixed(isExact ? 0 : 1)}%`;
}

export function bytes(size: number): string {
  for (const [unit, name] of [
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "KB"],
  ] as const) {
    if (size >= unit) return `${(size / unit).toLocaleString("en", { maximumFractionDigits: 1 })} ${name}`;
  }
  return `${size} bytes`;
}

export function duration(seconds: number): string {
  if (seconds < 1) return `${Math.round(1000 * seconds)} ms`;
  return seconds < 90 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : `${Math.round(seconds / 60)} min`;
}
