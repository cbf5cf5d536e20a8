import { Handle, type NodeProps, Position } from '@xyflow/react';
import type { ReactElement } from 'react';
import { Icon } from '../shared/icon.tsx';
import { type Tone, toneFill, toneText } from '../shared/state.ts';
import { lookOfNode, type NodeFacts } from './node-model.ts';

export interface StepNodeData extends Record<string, unknown> {
  readonly facts: NodeFacts;
  readonly isDim: boolean;
  readonly isCritical: boolean;
}

const hidden = 'opacity-0! min-w-0! min-h-0! size-px! border-0! pointer-events-none';

export function StepNode({ data, selected }: NodeProps & { readonly data: StepNodeData }): ReactElement {
  const { facts, isDim, isCritical } = data;
  const { icon, tone, word } = lookOfNode(facts) ?? plain;
  const frame = selected
    ? 'border-accent ring-2 ring-accent/30'
    : isCritical
      ? 'border-text/55'
      : 'border-line-strong';
  return (
    <div
      className={`relative flex h-17 w-54 flex-col justify-center overflow-hidden rounded-lg border bg-surface px-3 pl-3.5 text-left shadow-xs ${frame} ${isDim ? 'opacity-25' : ''}`}
    >
      <span
        className={`absolute inset-y-0 left-0 w-1 ${facts.state === null ? 'bg-line-strong' : toneFill[tone]}`}
      />
      <Handle type="target" position={Position.Left} className={hidden} isConnectable={false} />
      <div className="flex items-center gap-1.5">
        <span className="min-w-0 flex-1 truncate text-sm font-semibold">{facts.id}</span>
        <span className="figure shrink-0 text-xs text-muted">{facts.time}</span>
      </div>
      <div className="truncate text-xs text-muted">{facts.does}</div>
      <div className="mt-0.5 flex items-center gap-1 text-xs">
        {facts.state === null ? null : (
          <Icon
            name={icon}
            size={12}
            className={`${toneText[tone]} ${icon === 'loader-circle' ? 'turning' : ''}`}
          />
        )}
        <span className={`min-w-0 truncate font-medium ${toneText[tone]}`}>
          {[word, facts.note].filter((text) => text !== '').join(': ')}
        </span>
        <span className="figure ml-auto shrink-0 text-muted">
          {facts.attempts > 1 ? `${facts.attempts} calls ` : ''}
          {facts.money}
        </span>
      </div>
      <Handle type="source" position={Position.Right} className={hidden} isConnectable={false} />
    </div>
  );
}

const plain = { icon: 'circle-dashed', tone: 'quiet' as Tone, word: '' } as const;
