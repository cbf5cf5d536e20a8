import {
  Controls,
  type Edge,
  MiniMap,
  type Node,
  ReactFlow,
  type ReactFlowInstance,
  ReactFlowProvider,
  useStore,
} from '@xyflow/react';
import type { DrawnEdge } from './drawn-step.ts';
import '@xyflow/react/dist/base.css';
import { type MouseEvent, type ReactElement, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useWidth } from '../shared/use-width.ts';
import { FarCanvas } from './far-canvas.tsx';
import {
  type FitOptions,
  fitGraph,
  fitWhole,
  type GraphBox,
  type GraphLayout,
  heightFor,
  layoutGraph,
  nodeAt,
  nodeHeight,
  nodeWidth,
  toPath,
} from './layout.ts';
import { LineEdge } from './line-edge.tsx';
import { lookOfNode, type NodeFacts } from './node-model.ts';
import { StepNode } from './step-node.tsx';

const nodeTypes = { step: StepNode };
const edgeTypes = { line: LineEdge };
const farZoom = 0.45;
/** Graphs with fewer nodes are drawn in full at any zoom. */
const manyNodes = 150;
const none: readonly string[] = [];

export interface GraphViewProps {
  readonly nodes: readonly NodeFacts[];
  readonly edges: readonly DrawnEdge[];
  readonly selected?: string | null;
  /** Steps of the critical path. */
  readonly critical?: readonly string[];
  readonly isDim?: (facts: NodeFacts) => boolean;
  readonly onSelect?: (id: string | null) => void;
  /** The maximum height in CSS; smaller graphs use less. Absent: it fills its container. */
  readonly mostHeight?: string;
}

/** The whole graph. Its layout is computed once; live updates change only the content of nodes. */
export function GraphView(props: GraphViewProps): ReactElement {
  return (
    <ReactFlowProvider>
      <Flow {...props} />
    </ReactFlowProvider>
  );
}

/** Fits the graph into its box at first, and again when its width or the selected step changes. */
function useFit(layout: GraphLayout, { isOverview = false, selected = null }: FitOptions) {
  // A flow starts at zoom 1 and would draw thousands of elements that the fitted view discards.
  const [isFitted, setFitted] = useState(false);
  const flow = useRef<ReactFlowInstance | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const isMoved = useRef(false);
  const fit = useCallback((): void => {
    const view = fitGraph(layout, sizeOf(box.current), { isOverview, selected });
    void flow.current?.setViewport(view).then(() => setFitted(true));
  }, [layout, isOverview, selected]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another width is the reason
  useEffect(() => {
    if (!isMoved.current) fit();
  }, [fit, width]);
  /** A person has moved the graph. */
  const keepPlace = useCallback((): void => {
    isMoved.current = true;
  }, []);
  return { flow, box, width, isFitted, fit, keepPlace };
}

function brightAll(): boolean {
  return false;
}

function Flow({
  nodes: facts,
  edges,
  selected = null,
  critical = none,
  isDim = brightAll,
  onSelect,
  mostHeight,
}: GraphViewProps): ReactElement {
  const ids = facts.map(({ id }) => id).join(' ');
  const layout = useMemo(() => layoutGraph(ids === '' ? [] : ids.split(' '), edges), [ids, edges]);
  const isOverview = facts.length > manyNodes;
  const { flow, box, width, isFitted, fit, keepPlace } = useFit(layout, { isOverview, selected });
  const isZoomedOut = useStore(({ transform }) => transform[2] < farZoom);
  const isFar = facts.length > manyNodes && (isZoomedOut || !isFitted);
  const onCritical = useMemo(() => new Set(critical), [critical]);
  const nodes = isFar ? [] : toNodes(facts, layout, { selected, onCritical, isDim });
  const lines = useMemo(() => toEdges(layout, critical), [layout, critical]);
  const onPaneClick = (event: MouseEvent): void => {
    const point = flow.current?.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    onSelect?.(isFar && point !== undefined ? nodeAt(layout, point) : null);
  };
  const flowView = (
    <ReactFlow
      nodes={nodes}
      edges={isFar ? [] : lines}
      nodeTypes={nodeTypes as never}
      edgeTypes={edgeTypes as never}
      onInit={(instance) => {
        flow.current = instance;
        fit();
      }}
      // Without an event the page itself moves it.
      onMoveStart={(event) => event !== null && keepPlace()}
      onNodeClick={(_, node) => onSelect?.(node.id)}
      onPaneClick={onPaneClick}
      nodesDraggable={false}
      nodesConnectable={false}
      edgesFocusable={false}
      elementsSelectable={false}
      nodesFocusable={false}
      onlyRenderVisibleElements
      minZoom={0.01}
      maxZoom={1.25}
      proOptions={{ hideAttribution: true }}
      aria-label="Graph of the steps; the list of steps says the same"
    >
      {isFar && isFitted ? (
        <FarCanvas picture={{ layout, nodes: facts, isDim, selected, critical: onCritical }} />
      ) : null}
      <Controls
        showInteractive={false}
        position="top-right"
        className="graph-controls"
        // Nodes that are not drawn are not measured, so the control itself knows nothing to fit.
        onFitView={() => void flow.current?.setViewport(fitWhole(layout, sizeOf(box.current)))}
        onZoomIn={keepPlace}
        onZoomOut={keepPlace}
      />
      {facts.length > overviewNodes && !isOverview ? (
        <MiniMap
          pannable
          zoomable
          ariaLabel="Overview of the graph"
          nodeColor={colourOf}
          bgColor="var(--c-surface)"
          maskColor="color-mix(in srgb, var(--c-sunken) 70%, transparent)"
          className="rounded-md border border-line"
        />
      ) : null}
    </ReactFlow>
  );
  const height =
    mostHeight === undefined ? '100%' : `min(${heightFor(layout, width, isOverview)}px, ${mostHeight})`;
  return (
    <div ref={box} className="min-h-40" style={{ height }}>
      {flowView}
    </div>
  );
}

/** Larger graphs have an overview in the corner. */
const overviewNodes = 30;

function sizeOf(box: HTMLElement | null): GraphBox {
  return { width: box?.clientWidth ?? 0, height: box?.clientHeight ?? 0 };
}

function colourOf({ data }: Node): string {
  const look = lookOfNode(data.facts as NodeFacts);
  return look === null || look.tone === 'quiet' ? 'var(--c-line-strong)' : `var(--c-${look.tone})`;
}

interface Marks {
  readonly selected: string | null;
  readonly onCritical: ReadonlySet<string>;
  readonly isDim: (facts: NodeFacts) => boolean;
}

/** Sizes are fixed, so nothing is measured. */
function toNodes(facts: readonly NodeFacts[], { places }: GraphLayout, marks: Marks): Node[] {
  return facts.flatMap((one) => {
    const position = places.get(one.id);
    if (position === undefined) return [];
    return {
      id: one.id,
      type: 'step',
      position,
      width: nodeWidth,
      height: nodeHeight,
      selected: one.id === marks.selected,
      data: { facts: one, isDim: marks.isDim(one), isCritical: marks.onCritical.has(one.id) },
      handles: [
        { type: 'target', position: 'left', x: 0, y: nodeHeight / 2, width: 1, height: 1 },
        { type: 'source', position: 'right', x: nodeWidth, y: nodeHeight / 2, width: 1, height: 1 },
      ] as never,
    };
  });
}

/** An edge is on the path only between neighbours on it: another edge may join two of its steps. */
function toEdges({ lines }: GraphLayout, critical: readonly string[]): Edge[] {
  const next = new Map(critical.map((id, index) => [id, critical[index + 1]]));
  return lines.map(({ from, to, points }) => ({
    id: `${from} ${to}`,
    source: from,
    target: to,
    type: 'line',
    data: { path: toPath(points), isCritical: next.get(from) === to, isDim: false },
  }));
}
