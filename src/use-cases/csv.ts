/** Text in the form of RFC 4180. */

function quote(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A line of RFC 4180. */
export function toCsvLine(texts: readonly string[]): string {
  return `${texts.map(quote).join(',')}\r\n`;
}

/** Callers choose labels and users: a spreadsheet would calculate a text that begins like a formula. */
export function asText(text: string): string {
  return /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}
