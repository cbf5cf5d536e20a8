import type { ReactElement } from 'react';
import { Icon } from '../../shared/icon.tsx';
import type { Findings, Verdict } from './findings-model.ts';

const looks = {
  error: { icon: 'circle-x', tone: 'text-failed' },
  warning: { icon: 'triangle-alert', tone: 'text-waiting' },
  note: { icon: 'info', tone: 'text-muted' },
} as const;

const verdictWords: Readonly<Record<Verdict, string>> = {
  nobody: 'being read …',
  page: 'checked in the page; the server is asked when the text can be read',
  asking: 'checked in the page; the server is asked …',
  server: 'checked by the server, with what is registered now',
  unreachable: 'checked in the page alone; the server gives no answer',
};

/** What is wrong with the text, and who has looked. */
export function FindingList({ findings, verdict }: Findings): ReactElement {
  return (
    <section aria-label="Findings" tabIndex={0} className="scrolls max-h-44 border-t border-line text-sm">
      <div aria-live="polite">
        {findings.length === 0 && verdict !== 'nobody' ? (
          <p className="flex items-center gap-2 px-3 py-2 text-done">
            <Icon name="circle-check" size={15} /> Nothing is wrong with it.
          </p>
        ) : (
          <ul className="divide-y divide-line">
            {findings.slice(0, 50).map(({ severity, line, message, suggestion, pointer }, at) => (
              <li key={`${at} ${pointer} ${message}`} className="flex gap-2 px-3 py-1.5">
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
      </div>
      <p className="border-t border-line px-3 py-1 text-xs text-muted">{verdictWords[verdict]}</p>
    </section>
  );
}
