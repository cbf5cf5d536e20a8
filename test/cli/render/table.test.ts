import { describe, expect, it } from 'vitest';
import {
  type Column,
  createStyle,
  cutText,
  measureText,
  renderTable,
} from '../../../src/cli/render/print.ts';

const columns: readonly Column[] = [
  { header: 'RUN' },
  { header: 'PIPELINE', shrinks: true },
  { header: 'COST', align: 'right' },
  { header: 'ERROR', shrinks: true },
];
const id = '0198c2f4-7d3e-7b6a-9f00-1a2b3c4d5e6f';
const plain = { width: Infinity, style: createStyle(false) };

describe('renderTable', () => {
  it('aligns columns and leaves out one that is empty everywhere', () => {
    const rows = [
      ['a', 'short', '$0', ''],
      ['bbbb', 'much longer', '$12.50', ''],
    ];
    expect(renderTable(columns, rows, plain)).toEqual([
      'RUN   PIPELINE       COST',
      'a     short            $0',
      'bbbb  much longer  $12.50',
    ]);
  });

  it('fits the terminal by cutting what may be cut, the widest first, and never an identifier', () => {
    const rows = [
      [id, 'concat-with-music@1.0.0', '$0.0012', 'input_rejected: the clip holds no audio stream at all'],
    ];
    const lines = renderTable(columns, rows, { ...plain, width: 90 });
    expect(lines.every((line) => measureText(line) <= 90)).toBe(true);
    expect(lines[1]).toContain(`${id}  concat-with-music@1…  $0.0012  input_rejected: the …`);
  });

  it('overflows rather than cutting an identifier on a terminal that is too narrow', () => {
    expect(renderTable(columns, [[id, '', '', '']], { ...plain, width: 20 })[1]).toBe(id);
  });

  it('keeps a cell with line breaks on one line', () => {
    expect(renderTable([{ header: 'ERROR' }], [['one\n  two']], plain)).toEqual(['ERROR', 'one two']);
  });

  it('pads by what is seen: colour codes take no cells, wide characters two', () => {
    const rows = [
      ['\u001b[32mok\u001b[39m', 'x'],
      ['日本', 'x'],
    ];
    const lines = renderTable([{ header: 'A' }, { header: 'B' }], rows, plain);
    expect(lines).toEqual(['A     B', '\u001b[32mok\u001b[39m    x', '日本  x']);
  });
});

describe('cutText', () => {
  it('ends within the cells given, also where a wide character would straddle the end', () => {
    expect([cutText('abcdef', 4), cutText('日本語', 4), cutText('abc', 3)]).toEqual(['abc…', '日…', 'abc']);
  });
});
