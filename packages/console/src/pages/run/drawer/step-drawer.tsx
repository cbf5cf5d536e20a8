import type { Run } from '@capstan/core/contracts/run';
import type { RunStep, StepDetail } from '@capstan/core/contracts/run-step';
import { conditionOfStep } from '@capstan/core/run/run-status';
import { useQuery } from '@tanstack/react-query';
import { type ComponentProps, type ReactElement, type ReactNode, Suspense, useState } from 'react';
import { stepQuery } from '../../../api/runs.ts';
import { describeKind, lookOfNode } from '../../../graph/node-model.ts';
import { PanelBoundary } from '../../../layout/broken-page.tsx';
import type { stepTabs } from '../../../searches.ts';
import { Icon } from '../../../shared/icon.tsx';
import { latePart } from '../../../shared/late-part.tsx';
import { Button, Skeleton } from '../../../shared/parts.tsx';
import { QueryView } from '../../../shared/query-view.tsx';
import { lookOf } from '../../../shared/state.ts';
import { LookMark } from '../../../shared/state-mark.tsx';
import { type Tab, Tabs } from '../../../shared/tabs.tsx';
import { causeOf } from '../model.ts';
import { RunDialog } from '../run-dialogs.tsx';
import type { RunViewProps } from '../run-view-props.ts';
import { AttemptsTab } from './attempts-tab.tsx';
import { MoneyTab } from './money-tab.tsx';
import { ResultTab } from './result-tab.tsx';
import { StepLogTab } from './step-log-tab.tsx';
import type { StepTabProps } from './step-tab-props.ts';

const DecisionTab = latePart(() => import('./decision-tab.tsx'), 'DecisionTab');
const WhyWaiting = latePart(() => import('./waits/why-waiting.tsx'), 'WhyWaiting');
const OpenWait = latePart(() => import('./waits/open-wait.tsx'), 'OpenWait');
const ItemGrid = latePart(() => import('./item-grid.tsx'), 'ItemGrid');
const RoundList = latePart(() => import('./round-list.tsx'), 'RoundList');
const LadderTab = latePart(() => import('./ladder-tab.tsx'), 'LadderTab');
const Sheet = latePart(() => import('../../../shared/dialog.tsx'), 'Dialog');

type StepTab = (typeof stepTabs)[number];

const tabs: readonly Tab<StepTab>[] = [
  { name: 'result', label: 'Result' },
  { name: 'attempts', label: 'Attempts' },
  { name: 'decision', label: 'Decision' },
  { name: 'money', label: 'Money' },
  { name: 'ladder', label: 'Ladder' },
  { name: 'log', label: 'Log' },
];

const views: Readonly<Record<StepTab, (props: StepTabProps) => ReactNode>> = {
  result: (props) => <ResultTab {...props} />,
  attempts: (props) => <AttemptsTab {...props} />,
  decision: (props) => <DecisionTab {...props} />,
  money: (props) => <MoneyTab {...props} />,
  ladder: (props) => <LadderTab {...props} />,
  log: (props) => <StepLogTab {...props} />,
};

/** All facts about the selected step: a column beside the views, or a sheet on a narrow screen. */
export function StepDrawer({
  isSheet,
  ...props
}: RunViewProps & { readonly isSheet: boolean }): ReactElement | null {
  const { search, onSearch } = props;
  const close = (): void => onSearch({ step: undefined, item: undefined, tab: undefined });
  const name = search.item === undefined ? search.step : `${search.step} [${search.item}]`;
  if (isSheet) {
    return (
      <Suspense>
        <Sheet title={name} onClose={close} shape="side">
          <StepContent {...props} />
        </Sheet>
      </Suspense>
    );
  }
  return (
    <aside
      aria-label={`Step ${name}`}
      className="sticky top-16 flex max-h-[calc(100dvh-5rem)] w-[27rem] shrink-0 flex-col rounded-lg border border-line bg-surface 2xl:w-[34rem]"
    >
      <header className="flex items-center justify-between gap-2 px-4 pt-3">
        <h2 className="min-w-0 truncate text-lg">{name}</h2>
        <button
          type="button"
          aria-label="Close the step"
          onClick={close}
          className="grid size-8 place-items-center rounded-md text-muted hover:bg-sunken"
        >
          <Icon name="x" />
        </button>
      </header>
      <div
        className="scrolls min-h-0 flex-1 px-4 pb-4"
        tabIndex={0}
        role="group"
        aria-label="Facts of the step"
      >
        <StepContent {...props} />
      </div>
    </aside>
  );
}

function StepContent({ run, search, onSearch }: RunViewProps): ReactElement | null {
  const known = run.steps.find(({ id }) => id === search.step);
  const changes = `${known?.state} ${known?.attempts} ${known?.revision}`;
  const options = stepQuery(run.run_id, search.step ?? '', search.item);
  const query = useQuery({
    ...options,
    queryKey: [...options.queryKey, changes],
    enabled: search.step !== undefined,
    placeholderData: (former) => (former?.id === search.step ? former : undefined),
  });
  const tab = search.tab ?? 'result';
  return (
    <QueryView query={query}>
      {(step) => (
        <>
          <StepHead run={run} step={step} />
          <Suspense>
            {step.open_wait === undefined ? null : <OpenWait run={run} step={step} wait={step.open_wait} />}
            {step.state === 'waiting' || step.state === 'retrying' ? (
              <WhyWaiting run={run} step={step} />
            ) : null}
          </Suspense>
          {known?.items === undefined ? null : (
            <Suspense>
              <Parts
                run={run}
                step={known}
                items={known.items}
                item={search.item}
                onChoose={(item) => onSearch({ item })}
              />
            </Suspense>
          )}
          <div className="sticky top-0 z-10 mb-3 border-b border-line bg-inherit">
            <Tabs
              label="About the step"
              tabs={tabs}
              chosen={tab}
              onChoose={(name) => onSearch({ tab: name })}
            />
          </div>
          <PanelBoundary of={tab}>
            <Suspense fallback={<Skeleton />}>{views[tab]({ runId: run.run_id, step })}</Suspense>
          </PanelBoundary>
        </>
      )}
    </QueryView>
  );
}

interface PartsProps extends Omit<ComponentProps<typeof ItemGrid>, 'stepId'> {
  readonly step: RunStep;
}

/** The items of a step, or its rounds. */
function Parts({ step, items, ...rest }: PartsProps): ReactElement {
  return step.max_rounds === undefined ? (
    <ItemGrid stepId={step.id} items={items} {...rest} />
  ) : (
    <RoundList step={step} {...rest} />
  );
}

function RunAgainFrom({ run, from }: { readonly run: Run; readonly from: string }): ReactElement {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button icon="rotate-cw" look="bare" onClick={() => setOpen(true)}>
        Run again from here …
      </Button>
      {isOpen ? <RunDialog kind="rerun" run={run} from={from} onClose={() => setOpen(false)} /> : null}
    </>
  );
}

function StepHead({ run, step }: { readonly run: Run; readonly step: StepDetail }): ReactElement {
  const condition = conditionOfStep(step, run);
  const cause = causeOf(step, step.error?.message ?? '');
  // To be called off is no failure: enough others have succeeded.
  const isError = step.error !== undefined && condition.kind !== 'called_off';
  // The list of its items or rounds is below, with their number.
  const hasParts = step.items !== undefined && condition.kind !== 'partly';
  return (
    <div className="mb-2 text-sm">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <LookMark look={lookOfNode({ state: step.state, condition }) ?? lookOf(step.state)} isFilled />
        <span className="text-muted">{describeKind(step)}</span>
        {run.finished_at === null || step.item !== undefined ? null : (
          <RunAgainFrom run={run} from={step.id} />
        )}
      </div>
      {condition.detail === '' || hasParts || isError ? null : <p className="mt-1.5">{condition.detail}</p>}
      {step.error === undefined || !isError ? null : (
        <p className="mt-1.5 break-words text-failed">
          <code className="font-mono text-xs">{step.error.code}</code> {step.error.message}
        </p>
      )}
      {!isError || cause === '' ? null : (
        <p className="mt-1.5 break-words">
          <span className="text-muted">Cause, the call of the step itself:</span> {cause}
        </p>
      )}
    </div>
  );
}
