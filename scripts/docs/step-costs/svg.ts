/** The few shapes that the picture is made of. It brings its own ground, so that it can be read in light and in dark. */
export const width = 880;

const style = `
  text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .ground { fill: #ffffff; stroke: #d1d9e0; }
  .title { font-weight: 600; font-size: 15px; }
  .muted { fill: #59636e; font-size: 12px; }
  .strong { font-weight: 600; }
  .on { fill: #10151c; font-size: 11px; }
  .track { fill: #818b981f; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .ground { fill: #0d1117; stroke: #3d444d; }
    .muted { fill: #9198a1; }
    .on { fill: #10151c; }
  }`;

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** No more digits than a picture can show. */
function toText(value: number): string {
  return String(Number(value.toFixed(1)));
}

export type TextClass = 'title' | 'muted' | 'strong' | 'on';

export interface Place {
  readonly x: number;
  readonly y: number;
}

export function textAt(
  { x, y }: Place,
  text: string,
  { as, anchor = 'start' }: { readonly as?: TextClass; readonly anchor?: 'start' | 'middle' | 'end' } = {},
): string {
  const looks = as === undefined ? '' : ` class="${as}"`;
  const from = anchor === 'start' ? '' : ` text-anchor="${anchor}"`;
  return `<text x="${toText(x)}" y="${toText(y)}"${looks}${from}>${escapeXml(text)}</text>`;
}

export interface Box extends Place {
  readonly width: number;
  readonly height: number;
}

/** @param fill a colour, or null for the track that a bar runs in */
export function boxAt({ x, y, width: wide, height }: Box, fill: string | null): string {
  const looks = fill === null ? 'class="track"' : `fill="${fill}"`;
  return `<rect x="${toText(x)}" y="${toText(y)}" width="${toText(wide)}" height="${toText(height)}" ${looks}/>`;
}

export interface Drawing {
  readonly title: string;
  /** For those who do not see it. */
  readonly description: string;
  readonly height: number;
  readonly shapes: readonly string[];
}

export function toSvg({ title, description, height, shapes }: Drawing): string {
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">`,
    `<title id="title">${escapeXml(title)}</title>`,
    `<desc id="description">${escapeXml(description)}</desc>`,
    `<style>${style}\n</style>`,
    `<rect class="ground" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="6"/>`,
    ...shapes,
    '</svg>',
  ].join('\n')}\n`;
}
