/** The editor itself: YAML with its findings, completion and the usual keys. */

import type { Finding } from '@capstan/core/contracts/pipeline-answers';
import { autocompletion, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language';
import { lintGutter, setDiagnostics } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { completeDefinition } from './completion.ts';
import { toDiagnostics } from './diagnostics.ts';
import type { EditorFacts } from './facts.ts';
import { describeOnHover } from './hover-box.ts';

export interface Editor {
  setText(text: string): void;
  setFindings(findings: readonly Finding[]): void;
  close(): void;
}

export interface EditorOptions {
  readonly root: ShadowRoot;
  readonly label: string;
  readonly text: string;
  readonly onChange: (text: string) => void;
  readonly facts: () => EditorFacts | null;
}

/** The page's own colours; custom properties reach into a shadow root. */
const look = EditorView.theme({
  '&': { height: '100%', fontSize: '13px', color: 'var(--c-text)', backgroundColor: 'var(--c-surface)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, monospace', lineHeight: '1.6' },
  '.cm-content': { caretColor: 'var(--c-text)', padding: '8px 0' },
  '.cm-cursor': { borderLeftColor: 'var(--c-text)' },
  '.cm-gutters': { backgroundColor: 'var(--c-surface)', color: 'var(--c-faint)', border: 'none' },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--c-accent) 6%, transparent)' },
  '.cm-selectionBackground, &.cm-focused .cm-selectionBackground': {
    backgroundColor: 'var(--c-accent-soft) !important',
  },
  '.cm-tooltip': {
    backgroundColor: 'var(--c-raised)',
    color: 'var(--c-text)',
    border: '1px solid var(--c-line)',
    borderRadius: '6px',
  },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    backgroundColor: 'var(--c-accent-soft)',
    color: 'var(--c-text)',
  },
  '.cm-completionDetail': { color: 'var(--c-muted)', fontStyle: 'normal', marginLeft: '1.5em' },
  '.cm-completionInfo, .cm-described': { maxWidth: '24rem', padding: '6px 10px' },
  '.cm-described span': { color: 'var(--c-muted)', marginLeft: '1em' },
  '.cm-described p': { margin: '4px 0 0' },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--c-failed)' },
  '.cm-diagnostic-warning': { borderLeftColor: 'var(--c-waiting)' },
});

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--c-accent)' },
  { tag: tags.string, color: 'var(--c-done)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--c-running)' },
  { tag: tags.comment, color: 'var(--c-muted)', fontStyle: 'italic' },
]);

const reachable = {
  'aria-description': 'Tab indents. Press Escape, then Tab, to leave the editor.',
  tabindex: '0',
};

export function createEditor({ root, label, text, onChange, facts }: EditorOptions): Editor {
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: text,
      extensions: [
        EditorView.lineWrapping,
        lineNumbers(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        highlightActiveLine(),
        lintGutter(),
        yaml(),
        look,
        syntaxHighlighting(colours),
        describeOnHover(facts),
        autocompletion({ override: [(context) => completeDefinition(context, facts())] }),
        keymap.of([...defaultKeymap, ...historyKeymap, ...completionKeymap, indentWithTab]),
        EditorView.contentAttributes.of({ ...reachable, 'aria-label': label }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) onChange(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    setText: (changed) => {
      if (changed === view.state.doc.toString()) return;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: changed } });
    },
    setFindings: (findings) =>
      view.dispatch(setDiagnostics(view.state, toDiagnostics(view.state.doc, findings))),
    close: () => view.destroy(),
  };
}
