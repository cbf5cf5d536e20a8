import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import { splitAllowed } from '@capstan/core/nearest-name';
import type { ReactElement } from 'react';
import { Icon } from '../../shared/icon.tsx';
import { type Findings, toShownFindings, type Verdict } from './findings-model.ts';

const looks = {
  error: { icon: 'circle-x', tone: 'text-failed' },
  warning: { icon: 'triangle-alert', tone: 'text-waiting' },
  note: { icon: 'info', tone: 'text-muted' },
} as const;

const verdictWords: Readonly<Record<Verdict, string>> = {
  nobody: 'Loading …',
  page: 'Checked locally; fix the syntax for a full check',
  asking: 'Checked locally; full check under way …',
  server: 'Checked against the current fleet',
  unreachable: 'Checked locally; the server does not answer',
};

/** The suggestion first; the allowed values may be long, and stay folded. */
function FindingLine({
  finding: { severity, line, message, suggestion },
}: {
  readonly finding: Finding;
}): ReactElement {
  const [wrong, allowed] = splitAllowed(message);
  return (
    <>
      <Icon name={looks[severity].icon} size={15} className={`mt-0.5 ${looks[severity].tone}`} />
      <span className="figure w-8 shrink-0 text-muted">{line ?? ''}</span>
      <div className="min-w-0 break-words">
        {suggestion === undefined ? null : (
          <>
            <strong className="inline-block font-medium first-letter:uppercase">{suggestion}</strong>{' '}
          </>
        )}
        {wrong}
        {allowed === null ? null : (
          <details className="text-muted">
            <summary>Allowed keys</summary>
            {allowed}
          </details>
        )}
      </div>
    </>
  );
}

/** The findings in the text, and their sources. */
export function FindingList({ findings, verdict }: Findings): ReactElement {
  return (
    <section aria-label="Findings" tabIndex={0} className="scrolls max-h-44 border-t border-line text-sm">
      <div aria-live="polite">
        {findings.length === 0 && verdict !== 'nobody' ? (
          <p className="flex items-center gap-2 px-3 py-2 text-done">
            <Icon name="circle-check" size={15} /> No problems found
          </p>
        ) : (
          <ul className="divide-y divide-line">
            {toShownFindings(findings).map(({ key, finding }) => (
              <li key={key} className="flex gap-2 px-3 py-1.5">
                <FindingLine finding={finding} />
              </li>
            ))}
          </ul>
        )}
      </div>
      <p className="border-t border-line px-3 py-1 text-xs text-muted">{verdictWords[verdict]}</p>
    </section>
  );
}
