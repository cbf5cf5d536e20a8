import type { ReactElement } from 'react';
import type { Finding } from '../../../../src/contracts/pipeline.ts';
import { Icon } from '../../shared/icon.tsx';

const looks = {
  error: { icon: 'circle-x', tone: 'text-failed' },
  warning: { icon: 'triangle-alert', tone: 'text-waiting' },
  note: { icon: 'info', tone: 'text-muted' },
} as const;

/** What is wrong with the text, as the server would say it. */
export function FindingList({ findings }: { readonly findings: readonly Finding[] }): ReactElement {
  return (
    <section
      aria-label="Findings"
      aria-live="polite"
      tabIndex={0}
      className="scrolls max-h-44 border-t border-line text-sm"
    >
      {findings.length === 0 ? (
        <p className="flex items-center gap-2 px-3 py-2 text-done">
          <Icon name="circle-check" size={15} /> Nothing is wrong with it.
        </p>
      ) : (
        <ul className="divide-y divide-line">
          {findings.slice(0, 50).map(({ severity, line, message, suggestion, pointer }) => (
            <li key={`${pointer}${message}`} className="flex gap-2 px-3 py-1.5">
              <Icon name={looks[severity].icon} size={15} className={`mt-0.5 ${looks[severity].tone}`} />
              <span className="figure w-8 shrink-0 text-muted">{line ?? ''}</span>
              <span className="min-w-0 break-words">
                {message}
                {suggestion === undefined ? null : <span className="text-muted"> – {suggestion}</span>}
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
