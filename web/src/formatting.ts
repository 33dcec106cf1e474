/** Numbers as text. */

export function shortened(value: number): string {
  const large = Math.abs(value);
  const plain = large < 1e9 && (large >= 1e-3 || large === 0);
  const text = plain ? value.toLocaleString("en", { maximumSignificantDigits: 6 }) : value.toExponential(3);
  return text.replace("-", "\u2212");
}
