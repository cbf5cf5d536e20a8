import { hoverTooltip } from '@codemirror/view';
import type { EditorFacts } from './facts.ts';
import { describeAt, type HoverText } from './hover.ts';

function draw({ title, detail, about }: HoverText): HTMLElement {
  const box = document.createElement('div');
  box.className = 'cm-described';
  for (const [tag, text] of [
    ['strong', title],
    ['span', detail],
    ['p', about],
  ] as const) {
    if (text === '') continue;
    const part = document.createElement(tag);
    part.textContent = text;
    box.append(part);
  }
  return box;
}

/** Shows an explanation in a box over the word under the pointer. */
export function describeOnHover(facts: () => EditorFacts | null) {
  return hoverTooltip(({ state: { doc } }, pos) => {
    const known = facts();
    if (known === null) return null;
    const line = doc.lineAt(pos);
    const column = pos - line.from;
    const rest = /^[\w-]*/.exec(line.text.slice(column))?.[0].length ?? 0;
    const before = line.text.slice(0, column + rest);
    const cursor = { lines: doc.toString().split('\n'), at: line.number - 1, before };
    const found = /[\w-]$/.test(before) ? describeAt(cursor, known) : null;
    if (found === null) return null;
    const word = /[\w-]+$/.exec(before)?.[0].length ?? 0;
    const end = line.from + before.length;
    return { pos: end - word, end, above: true, create: () => ({ dom: draw(found) }) };
  });
}
