import { Handle, type NodeProps, Position, useStore } from '@xyflow/react';
import type { ReactElement } from 'react';
import { Icon } from '../shared/icon.tsx';
import { type Tone, toneFill, toneText } from '../shared/state.ts';
import { shortZoom, tinyZoom } from './layout.ts';
import { effortOfNode, lookOfNode, type NodeFacts, statusOfNode } from './node-model.ts';

export interface StepNodeData extends Record<string, unknown> {
  readonly facts: NodeFacts;
  readonly isDim: boolean;
  readonly isCritical: boolean;
}

const hidden = 'opacity-0! min-w-0! min-h-0! size-px! border-0! pointer-events-none';

export function StepNode({ data, selected }: NodeProps & { readonly data: StepNodeData }): ReactElement {
  const { facts, isDim, isCritical } = data;
  const { icon, tone } = lookOfNode(facts) ?? plain;
  const status = statusOfNode(facts);
  const isShort = useStore(({ transform }) => transform[2] < shortZoom);
  const isTiny = useStore(({ transform }) => transform[2] < tinyZoom);
  const frame = selected
    ? 'border-accent ring-2 ring-accent/30'
    : isCritical
      ? 'border-text/55'
      : 'border-line-strong';
  return (
    <div
      className={`relative flex h-21 w-54 flex-col justify-center overflow-hidden rounded-lg border bg-surface px-3 pl-3.5 text-left shadow-xs ${frame} ${isDim ? 'opacity-25' : ''}`}
    >
      <span
        className={`absolute inset-y-0 left-0 w-1 ${facts.state === null ? 'bg-line-strong' : toneFill[tone]}`}
      />
      <Handle type="target" position={Position.Left} className={hidden} isConnectable={false} />
      {isShort ? (
        <div className="flex items-center gap-2" title={[facts.id, status].join(': ')}>
          {facts.state === null ? null : (
            <Icon
              name={icon}
              size={22}
              className={`shrink-0 ${toneText[tone]} ${icon === 'loader-circle' ? 'turning' : ''}`}
            />
          )}
          <span
            className={`line-clamp-2 min-w-0 break-words font-semibold leading-tight ${isTiny ? 'text-[1.625rem]' : 'text-xl'}`}
          >
            {facts.id}
          </span>
        </div>
      ) : (
        <NodeLines facts={facts} status={status} />
      )}
      <Handle type="source" position={Position.Right} className={hidden} isConnectable={false} />
    </div>
  );
}

/** The name, the action and the state, each with what it took. */
function NodeLines({ facts, status }: { readonly facts: NodeFacts; readonly status: string }): ReactElement {
  const { icon, tone } = lookOfNode(facts) ?? plain;
  return (
    <>
      <div className="flex items-center gap-1.5">
        <span className="min-w-0 flex-1 truncate text-sm font-semibold" title={facts.id}>
          {facts.id}
        </span>
        <span className="figure shrink-0 text-xs text-muted">{facts.time}</span>
      </div>
      <div className="flex items-center gap-1.5 text-xs text-muted">
        <span className="min-w-0 flex-1 truncate">{facts.does}</span>
        <span className="figure shrink-0">{effortOfNode(facts)}</span>
      </div>
      <div className={`mt-0.5 flex items-start gap-1 text-xs leading-tight ${toneText[tone]}`}>
        {facts.state === null ? null : (
          <Icon name={icon} size={12} className={`mt-0.5 ${icon === 'loader-circle' ? 'turning' : ''}`} />
        )}
        <span className="line-clamp-2 min-w-0 font-medium" title={status}>
          {status}
        </span>
      </div>
    </>
  );
}

const plain = { icon: 'circle-dashed', tone: 'quiet' as Tone } as const;
