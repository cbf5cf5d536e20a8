/** A block of lines on a terminal that is redrawn in place. */
import { removeControls } from '../render/print.ts';
import type { Terminal } from '../shell.ts';

export interface LiveBlock {
  readonly show: (lines: readonly string[]) => void;
  /** Takes the block off the screen; what is printed next stands in its place. */
  readonly clear: () => void;
}

export function createLiveBlock(terminal: Terminal): LiveBlock {
  let height = 0;
  const home = (): string => (height === 0 ? '' : `\u001b[${height}A`);
  return {
    show: (lines) => {
      terminal.write(
        `${home()}${lines.map((line) => `\u001b[2K${removeControls(line)}\n`).join('')}\u001b[J`,
      );
      height = lines.length;
    },
    clear: () => {
      terminal.write(`${home()}\u001b[J`);
      height = 0;
    },
  };
}
