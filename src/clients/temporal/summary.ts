/** Temporal bounds a summary by bytes (400 by default), a version has up to 128 characters of any kind. */
const mostBytes = 200;

/** As many whole characters as fit. */
export function toSummary(text: string): string {
  if (Buffer.byteLength(text) <= mostBytes) return text;
  let bytes = 0;
  let kept = '';
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > mostBytes - 3) break;
    kept += character;
  }
  return `${kept}…`;
}
