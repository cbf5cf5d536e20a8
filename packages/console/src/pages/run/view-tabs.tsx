import type { ReactElement } from 'react';
import type { runViews } from '../../searches.ts';
import { type Tab, Tabs } from '../../shared/tabs.tsx';

type RunViewName = (typeof runViews)[number];

const tabs: readonly Tab<RunViewName>[] = [
  { name: 'graph', label: 'Graph', icon: 'workflow' },
  { name: 'timeline', label: 'Timeline', icon: 'chart-gantt' },
  { name: 'log', label: 'Log', icon: 'scroll-text' },
  { name: 'input', label: 'Input', icon: 'list-tree' },
  { name: 'output', label: 'Output', icon: 'file-output' },
  { name: 'files', label: 'Files', icon: 'images' },
];

export function ViewTabs({
  view,
  onChoose,
}: {
  readonly view: RunViewName;
  readonly onChoose: (view: RunViewName) => void;
}): ReactElement {
  return <Tabs label="Views of the run" tabs={tabs} chosen={view} onChoose={onChoose} />;
}
