/** Colour by SGR codes, or none at all. */
import type { Terminal } from '../shell.ts';

type Paint = (text: string) => string;
export type Colour = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'cyan';
export type Style = Readonly<Record<Colour, Paint>>;

const codes: Readonly<Record<Colour, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  cyan: [36, 39],
};

/** NO_COLOR (any value) wins over everything; a pipe or a dumb terminal gets no colour. */
export function wantsColour(output: Terminal, environment: NodeJS.ProcessEnv): boolean {
  if (environment.NO_COLOR !== undefined && environment.NO_COLOR !== '') return false;
  if (environment.FORCE_COLOR !== undefined && environment.FORCE_COLOR !== '0') return true;
  return output.isTTY === true && environment.TERM !== 'dumb';
}

export function createStyle(coloured: boolean): Style {
  const paint =
    ([on, off]: readonly [number, number]): Paint =>
    (text) =>
      coloured && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text;
  return {
    bold: paint(codes.bold),
    dim: paint(codes.dim),
    red: paint(codes.red),
    green: paint(codes.green),
    yellow: paint(codes.yellow),
    blue: paint(codes.blue),
    cyan: paint(codes.cyan),
  };
}
