import type { ReactElement } from 'react';
import { diffLines, type FoldedLine, foldSame } from './line-diff.ts';

const looks = { same: '', gone: 'bg-failed-soft text-failed', new: 'bg-done-soft text-done' } as const;
const signs = { same: ' ', gone: '−', new: '+' } as const;

export function TextDiff({
  before,
  after,
}: {
  readonly before: string;
  readonly after: string;
}): ReactElement {
  const lines = foldSame(diffLines(before, after));
  if (!lines.some(({ kind }) => kind !== 'same')) return <p className="text-sm text-muted">No changes</p>;
  return (
    <pre
      tabIndex={0}
      role="group"
      aria-label="What changed"
      className="scrolls mt-1.5 rounded-md border border-line bg-surface py-1.5 font-mono text-xs leading-5"
    >
      {lines.map((line, index) => (
        <Line key={index} line={line} />
      ))}
    </pre>
  );
}

function Line({ line: { kind, text, folded } }: { readonly line: FoldedLine }): ReactElement {
  if (folded !== undefined) {
    return <div className="px-3 text-muted">… {folded === 1 ? '1 line' : `${folded} lines`}</div>;
  }
  return (
    <div className={`min-w-max px-3 ${looks[kind]}`}>
      <span className="select-none">{signs[kind]} </span>
      {text}
    </div>
  );
}
