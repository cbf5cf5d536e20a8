import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SourceFile } from '../../../src/cli/input/arguments.ts';
import { countFindings, renderFindings } from '../../../src/cli/render/findings.ts';
import { createStyle } from '../../../src/cli/render/print.ts';

const plain = { width: Infinity, style: createStyle(false) };

function aFinding(fields: Partial<Finding> = {}): Finding {
  return {
    severity: 'error',
    code: 'step_unknown',
    pointer: '/steps/0/input/clip',
    message: 'no step is called "trimm"',
    ...fields,
  };
}

function aSource(text: string): SourceFile {
  return { name: 'p.yaml', text, type: 'application/yaml' };
}

describe('renderFindings', () => {
  it('shows the place, the offending line, a caret below its column and the suggestion', () => {
    const source = aSource('steps:\n  - clip: steps.trimm.output\n');
    const finding = aFinding({ line: 2, column: 17, suggestion: 'did you mean "trim"?' });
    expect(renderFindings([finding], source, plain)).toEqual([
      'p.yaml:2:17 error step_unknown no step is called "trimm"',
      '    2 |   - clip: steps.trimm.output',
      '      |                 ^',
      '      = did you mean "trim"?',
    ]);
  });

  it('indents the caret by the tabs of the line, whatever a tab is worth', () => {
    const lines = renderFindings([aFinding({ line: 1, column: 4 })], aSource('\ta\tbad'), plain);
    expect(lines.slice(1)).toEqual(['    1 | \ta\tbad', '      | \t \t^']);
  });

  it('names the pointer where the finding has no line', () => {
    expect(renderFindings([aFinding()], aSource('{}'), plain)).toEqual([
      'p.yaml error step_unknown no step is called "trimm" (at /steps/0/input/clip)',
    ]);
  });

  it('follows the order of the file', () => {
    const findings = [
      aFinding({ line: 3 }),
      aFinding({ line: 1, column: 2 }),
      aFinding({ line: 1, column: 1 }),
    ];
    const heads = renderFindings(findings, aSource('\n\n\n'), plain).map((line) => line.split(' ')[0]);
    expect(heads).toEqual(['p.yaml:1:1', 'p.yaml:1:2', 'p.yaml:3']);
  });

  it('keeps the caret under the same character when a long line is cut to the terminal', () => {
    const cases = fc
      .record({ length: fc.integer({ min: 1, max: 400 }), width: fc.integer({ min: 30, max: 120 }) })
      .chain(({ length, width }) =>
        fc.tuple(fc.constant({ length, width }), fc.integer({ min: 1, max: length })),
      );
    fc.assert(
      fc.property(cases, ([{ length, width }, column]) => {
        // Every character differs from its neighbours, so that a shift shows.
        const line = Array.from({ length }, (_, at) => String.fromCharCode(97 + (at % 26))).join('');
        const style = createStyle(false);
        const rendered = renderFindings([aFinding({ line: 1, column })], aSource(line), { width, style });
        const [, shown = '', caret = ''] = rendered;
        expect(shown.length).toBeLessThanOrEqual(width);
        expect(shown[caret.indexOf('^')]).toBe(line[column - 1]);
      }),
    );
  });
});

describe('countFindings', () => {
  it('counts by severity, in words, and leaves out what there is none of', () => {
    const findings = [aFinding(), aFinding(), aFinding({ severity: 'note' })];
    expect(countFindings(findings)).toBe('2 errors, 1 note');
  });
});
