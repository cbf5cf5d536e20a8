import type { Skill } from '@capstan/core/contracts/skill';
import { describeDecided } from '@capstan/core/repair/describe-decided';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { patchSkill, retireSkill, skillQuery, skillUsesQuery, skillWorthQuery } from '../../api/skills.ts';
import { ValueDiff } from '../../diff/value-diff.tsx';
import { Ago } from '../../shared/ago.tsx';
import { ConfirmButton, type ConfirmQuestion } from '../../shared/confirm-button.tsx';
import { formatDuration, formatUsd } from '../../shared/format.ts';
import { areaClass, Button, Facts, linkClass, PageHead, Panel } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { StateMark } from '../../shared/state-mark.tsx';
import { ConfidenceBar } from '../skills/confidence-bar.tsx';
import { describeInstructions } from '../skills/skill-words.ts';

export function SkillPage(): ReactElement {
  const { skillId } = useParams({ from: '/skills/$skillId' });
  const query = useQuery(skillQuery(skillId));
  return <QueryView query={query}>{(skill) => <SkillOpen skill={skill} />}</QueryView>;
}

const retireQuestion: ConfirmQuestion = {
  title: 'Retire this skill?',
  about: <p>No step uses it any more. A similar failure needs a correction again, which may cost money.</p>,
  confirm: 'Retire the skill',
  keep: 'Keep the skill',
};

function SkillOpen({ skill }: { readonly skill: Skill }): ReactElement {
  const queries = useQueryClient();
  const [isEditing, setEditing] = useState(false);
  const read = () => queries.invalidateQueries({ queryKey: ['skill', skill.id] });
  const retire = useMutation({ mutationFn: () => retireSkill(skill.id), onSettled: read });
  return (
    <>
      <p className="text-xs text-muted">
        <Link to="/skills" className="hover:underline">
          Skills
        </Link>
      </p>
      <PageHead
        title={skill.pattern.job_type}
        about={skill.id}
        actions={
          <>
            <Button onClick={() => setEditing(!isEditing)}>{isEditing ? 'Stop editing' : 'Edit'}</Button>
            {skill.state === 'active' ? (
              <ConfirmButton
                disabled={retire.isPending}
                question={retireQuestion}
                onConfirm={() => retire.mutate()}
              >
                Retire …
              </ConfirmButton>
            ) : null}
          </>
        }
      />
      {retire.error === null ? null : <ProblemView error={retire.error} />}
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <Panel title="Instructions">
          {isEditing ? (
            <EditSkill skill={skill} onDone={() => setEditing(false)} />
          ) : (
            <p className="whitespace-pre-wrap break-words text-sm">
              {describeInstructions(skill.instructions)}
            </p>
          )}
          {skill.template === undefined ? null : (
            <>
              <h3 className="mb-1 mt-4 text-muted">Template that rules apply without a model</h3>
              <pre className="scrolls rounded-md border border-line bg-sunken p-3 font-mono text-xs">
                {skill.template}
              </pre>
            </>
          )}
        </Panel>
        <Panel title="Evidence">
          <Facts
            facts={[
              ['state', <StateMark key="state" state={skill.state} />],
              ['confidence', <ConfidenceBar key="confidence" skill={skill} />],
              [
                'trust',
                skill.trust === 'trusted' ? 'trusted' : 'a candidate: shown to models as a hint only',
              ],
              ['for errors', skill.pattern.error_patterns?.join(' · ') ?? 'any failure'],
              [
                'needs',
                skill.pattern.repo_signals.length === 0 ? null : skill.pattern.repo_signals.join(', '),
              ],
              ['learnt from', skill.source],
              ['applied', describeDecided(skill.as_decided)],
              ['last used', <Ago key="used" at={new Date(skill.last_used * 1_000).toISOString()} />],
              ['version', skill.version],
            ]}
          />
          <Uses id={skill.id} />
        </Panel>
        <Worth id={skill.id} />
      </div>
    </>
  );
}

function EditSkill({ skill, onDone }: { readonly skill: Skill; readonly onDone: () => void }): ReactElement {
  const queries = useQueryClient();
  const [text, setText] = useState(skill.instructions);
  const save = useMutation({
    mutationFn: () => patchSkill(skill.id, { instructions: text }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['skill', skill.id] });
      onDone();
    },
  });
  return (
    <div className="flex flex-col gap-2">
      <textarea
        aria-label="Instructions"
        rows={8}
        className={areaClass}
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      {save.error === null ? null : <ProblemView error={save.error} />}
      <Button
        look="primary"
        className="self-start"
        disabled={save.isPending || text === skill.instructions}
        onClick={() => save.mutate()}
      >
        Save as version {skill.version + 1}
      </Button>
    </div>
  );
}

const dots = { success: 'bg-done', failure: 'bg-failed', neutral: 'bg-line-strong' } as const;

/** A dot per use, oldest first. */
function Uses({ id }: { readonly id: string }): ReactElement | null {
  const uses = useQuery(skillUsesQuery(id)).data?.items ?? [];
  if (uses.length === 0) return null;
  return (
    <div className="mt-4">
      <h3 className="mb-1.5 text-muted">Uses, oldest first</h3>
      <div className="flex flex-wrap gap-1">
        {uses.toReversed().map(({ use_id, outcome, at, level }) => (
          <span
            key={use_id}
            title={`${outcome} at level ${level}, ${at}`}
            className={`size-2.5 rounded-full ${dots[outcome]}`}
          />
        ))}
      </div>
    </div>
  );
}

/** The cost of learning it, against the savings of its uses. */
function Worth({ id }: { readonly id: string }): ReactElement | null {
  const { data } = useQuery({ ...skillWorthQuery(id), retry: false });
  if (data === undefined) return null;
  const { learnt } = data;
  return (
    <Panel title="Value" className="lg:col-span-2">
      <p className="figure mb-3 text-sm">
        {data.uses} uses saved about <strong>{formatUsd(data.saved_usd)}</strong> and{' '}
        <strong>{formatDuration(data.saved_ms)}</strong>, and {data.reviews_avoided} reviews.{' '}
        <span className="text-muted">An estimate: each use counts as what learning it cost.</span>
      </p>
      {learnt === null ? null : (
        <>
          <h3 className="text-muted">
            Learnt{' '}
            {learnt.run_id === undefined ? null : (
              <Link
                to="/runs/$runId"
                params={{ runId: learnt.run_id }}
                search={{ step: learnt.step_id, tab: 'ladder' }}
                className={linkClass}
              >
                in step {learnt.step_id}
              </Link>
            )}{' '}
            for {formatUsd(learnt.cost_usd)} in {formatDuration(learnt.duration_ms)}
          </h3>
          <p className="mt-1 break-words text-sm text-failed">{learnt.error}</p>
          <ValueDiff before={learnt.input} after={learnt.corrected} />
        </>
      )}
    </Panel>
  );
}
