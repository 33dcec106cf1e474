/** Round numbers along an axis; coterie/web/ticks.py does the same. */

export function ticks(low: number, high: number, count: number): number[] {
  const rough = (high - low) / Math.max(count, 1);
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const off = (size: number) => Math.abs(Math.log((size * power) / rough));
  const step = power * [1, 2, 5, 10].reduce((best, size) => (off(size) < off(best) ? size : best));
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  if (last - first > 10 * count) return [low, high];
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)) + 0);
}

export function texts(values: number[]): string[] {
  const step = values.length > 1 ? Math.abs(values[1]! - values[0]!) : Math.abs(values[0] ?? 1) || 1;
  const largest = Math.max(0, ...values.map(Math.abs));
  for (const [size, letter] of [
    [1e9, "G"],
    [1e6, "M"],
  ] as const) {
    if (step >= size / 1000 && largest >= size && largest < 1000 * size) {
      return values.map((value) => (value ? decimals(value / size, step / size) + letter : "0"));
    }
  }
  if (largest >= 1e9 || largest < 1e-4)
    return values.map((value) => String(Number(value.toPrecision(4))).replace("-", "\u2212"));
  return values.map((value) => decimals(value, step));
}

function decimals(value: number, step: number): string {
  let digits = 0;
  while (digits < 9 && Math.abs(Number(step.toFixed(digits)) - step) >= 1e-6 * step) digits++;
  const text = value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return text.replace("-", "\u2212");
}
