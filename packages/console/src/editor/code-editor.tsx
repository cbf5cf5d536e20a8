import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import { type ReactElement, useEffect, useRef } from 'react';
import { createEditor, type Editor } from './create-editor.ts';
import type { EditorFacts } from './facts.ts';

export interface CodeEditorProps {
  readonly label: string;
  readonly text: string;
  readonly findings?: readonly Finding[];
  readonly facts?: EditorFacts;
  readonly onChange: (text: string) => void;
}

/** An editor for YAML in a shadow root, where its styles need no exception from the page's policy. */
export function CodeEditor({ label, text, findings, facts, onChange }: CodeEditorProps): ReactElement {
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const latest = useRef({ onChange, facts, text });
  latest.current = { onChange, facts, text };
  useEffect(() => {
    const host = place.current;
    if (host === null) return;
    const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
    const made = createEditor({
      root,
      label,
      text: latest.current.text,
      onChange: (changed) => latest.current.onChange(changed),
      facts: () => latest.current.facts ?? null,
    });
    editor.current = made;
    return () => made.close();
  }, [label]);
  useEffect(() => editor.current?.setText(text), [text]);
  useEffect(() => {
    if (findings !== undefined) editor.current?.setFindings(findings);
  }, [findings]);
  return <div ref={place} data-own-keys className="size-full min-h-0 overflow-hidden" />;
}
