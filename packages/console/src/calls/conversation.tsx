import type { CallContent, CallRecord } from '@capstan/core/contracts/call';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { callContentQuery } from '../api/calls.ts';
import { isStatus } from '../api/problem-error.ts';
import { JsonTree } from '../json/json-tree.tsx';
import { Moment } from '../shared/ago.tsx';
import { buttonClass, Panel } from '../shared/parts.tsx';
import { QueryView } from '../shared/query-view.tsx';
import { toConversation, type Utterance } from './conversation-model.ts';

/** What was sent and answered. */
export function CallContents({ call }: { readonly call: CallRecord }): ReactElement {
  const query = useQuery(callContentQuery(call.decision_id));
  return (
    <Panel
      title="Contents"
      actions={
        <Link
          to="/capabilities/$name"
          params={{ name: call.capability }}
          search={{ tab: 'try', from: call.decision_id }}
          className={buttonClass('plain')}
        >
          Open in Try it
        </Link>
      }
    >
      {isStatus(query.error, 403) ? (
        <p className="text-sm text-muted">
          What was sent and answered is shown to keys with the scope <code>content:read</code>, which this one
          lacks.
        </p>
      ) : (
        <QueryView query={query}>{(content) => <Content content={content} />}</QueryView>
      )}
    </Panel>
  );
}

function Content({ content }: { readonly content: CallContent }): ReactElement {
  const conversation = toConversation(content);
  return (
    <div className="flex flex-col gap-3">
      {conversation === null ? (
        <>
          <JsonTree value={content.input} name="input" />
          <JsonTree value={content.output} name="output" />
        </>
      ) : (
        <>
          {conversation.tools.length === 0 ? null : (
            <p className="text-sm text-muted">Tools: {conversation.tools.join(', ')}</p>
          )}
          <ol aria-label="Conversation" className="flex flex-col gap-2">
            {conversation.said.map((said, index) => (
              <SaidItem key={index} said={said} />
            ))}
          </ol>
        </>
      )}
      <p className="text-xs text-muted">
        Long texts are shortened. Deleted <Moment at={content.deleted_at} />.
      </p>
    </div>
  );
}

function SaidItem({ said: { role, kind, name, text } }: { readonly said: Utterance }): ReactElement {
  const isQuiet = kind !== 'text';
  return (
    <li className={`rounded-md border border-line px-3 py-2 ${role === 'assistant' ? 'bg-accent-soft' : ''}`}>
      <p className="text-xs font-medium text-muted">
        {role}
        {isQuiet ? `, ${kind}` : ''}
        {name === undefined || name === '' ? '' : ` ${name}`}
      </p>
      <div className={`whitespace-pre-wrap text-sm wrap-anywhere ${isQuiet ? 'font-mono text-xs' : ''}`}>
        {text}
      </div>
    </li>
  );
}
