/** Reads a drawing back: its boxes and curves; throws where it is no well-formed XML. */
export interface Box {
  readonly title: string;
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

export interface Curve {
  readonly start: readonly [x: number, y: number];
  readonly end: readonly [x: number, y: number];
  /** Level parts through the columns of layers between. */
  readonly levels: readonly { readonly left: number; readonly right: number; readonly y: number }[];
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescapeXml(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|apos);/g, (_, name: string) => entities[name] ?? '');
}

const attribute = String.raw`\s+[a-zA-Z-]+="(?:[^<&"]|&(?:amp|lt|gt|quot|apos);)*"`;
const markup = new RegExp(
  `<(/?)([a-zA-Z]+)((?:${attribute})*)\\s*(/?)>|[^<&]+|&(?:amp|lt|gt|quot|apos);`,
  'y',
);

/** @returns the names of its elements */
export function readElements(xml: string): string[] {
  const open: string[] = [];
  const names: string[] = [];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what XML does not allow
  if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff\p{Cs}]/u.test(xml))
    throw new Error('no character of XML');
  for (markup.lastIndex = 0; markup.lastIndex < xml.length; ) {
    const at = markup.lastIndex;
    const found = markup.exec(xml);
    if (found === null) throw new Error(`not XML at ${at}: ${xml.slice(at, at + 80)}`);
    const [, closing, name, , empty] = found;
    if (name === undefined) continue;
    if (closing === '/') {
      if (open.pop() !== name) throw new Error(`</${name}> closes nothing`);
      continue;
    }
    names.push(name);
    if (empty === '') open.push(name);
  }
  if (open.length > 0) throw new Error(`${open.join()} is never closed`);
  return names;
}

export function readBoxes(svg: string): Box[] {
  return [
    ...svg.matchAll(
      /<g class="node \w+" transform="translate\((\S+) (\S+)\)"><title>([^<]*)<\/title><rect class="box" width="(\d+)" height="(\d+)"/g,
    ),
  ].map(([, x, y, title, width, height]) => ({
    title: unescapeXml(title ?? ''),
    left: Number(x),
    top: Number(y),
    right: Number(x) + Number(width),
    bottom: Number(y) + Number(height),
  }));
}

export function readCurves(svg: string): Curve[] {
  return [...svg.matchAll(/<path d="M(\S+) ([\d.-]+)(C[^"]+)" marker-end/g)].map(([, x, y, rest]) => {
    const start = [Number(x), Number(y)] as const;
    const levels: Curve['levels'][number][] = [];
    let end: readonly [number, number] = start;
    for (const [, letter, numbers] of (rest ?? '').matchAll(/([CH])([^CH]+)/g)) {
      const values = (numbers ?? '').split(' ').map(Number);
      if (letter === 'H') levels.push({ left: end[0], right: values[0] ?? 0, y: end[1] });
      end = letter === 'H' ? [values[0] ?? 0, end[1]] : [values[4] ?? 0, values[5] ?? 0];
    }
    return { start, end, levels };
  });
}
