import type { Skill } from '@capstan/core/contracts/skill';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { skillsQuery } from '../../api/skills.ts';
import { Ago } from '../../shared/ago.tsx';
import { FilterField, NothingMatches } from '../../shared/filter-field.tsx';
import { EmptyState, PageHead, Panel, tableClass } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { StateMark } from '../../shared/state-mark.tsx';
import { ConfidenceBar } from './confidence-bar.tsx';
import { describeInstructions } from './skill-words.ts';

/** Skills that wait for a review first, then by how often they helped. */
function sortSkills(skills: readonly Skill[]): Skill[] {
  return skills.toSorted(
    (a, b) =>
      Number(b.flagged) - Number(a.flagged) ||
      Number(a.state === 'retired') - Number(b.state === 'retired') ||
      b.uses - a.uses,
  );
}

export function SkillsPage(): ReactElement {
  const query = useQuery(skillsQuery());
  const [text, setText] = useState('');
  return (
    <>
      <PageHead
        title="Skills"
        about="Fixes learned from past failures. Capstan applies them without a model or a review."
        actions={<FilterField label="Filter skills" value={text} onChange={setText} />}
      />
      <Panel isTight>
        <QueryView query={query}>
          {(skills) => {
            const words = text.toLowerCase();
            const shown = sortSkills(skills).filter(({ pattern, instructions }) =>
              `${pattern.job_type} ${instructions}`.toLowerCase().includes(words),
            );
            if (shown.length === 0 && text !== '') return <NothingMatches text={text} />;
            if (shown.length === 0) {
              return (
                <EmptyState title="No skills yet" command="npm run demo -- learning">
                  Capstan learns a skill when a correction works: from a model, or from a review with
                  “Remember as a skill” on.
                </EmptyState>
              );
            }
            return <SkillTable skills={shown} />;
          }}
        </QueryView>
      </Panel>
    </>
  );
}

function SkillTable({ skills }: { readonly skills: readonly Skill[] }): ReactElement {
  return (
    <table className={tableClass}>
      <thead>
        <tr>
          <th>For</th>
          <th>Confidence</th>
          <th className="text-right! max-sm:hidden">Uses</th>
          <th className="max-sm:hidden">State</th>
          <th className="text-right! max-md:hidden">Last used</th>
        </tr>
      </thead>
      <tbody>
        {skills.map((skill) => (
          <tr key={skill.id} className="hover:bg-sunken/60">
            <td>
              <Link
                to="/skills/$skillId"
                params={{ skillId: skill.id }}
                className="font-medium hover:text-accent hover:underline"
              >
                {skill.pattern.job_type}
              </Link>
              {skill.flagged ? (
                <span className="ml-2 rounded bg-waiting-soft px-1.5 text-xs text-waiting">needs review</span>
              ) : null}
              <div className="line-clamp-1 max-w-36 break-all text-xs sm:max-w-xl text-muted">
                {describeInstructions(skill.instructions)}
              </div>
            </td>
            <td>
              <ConfidenceBar skill={skill} />
            </td>
            <td className="figure text-right! max-sm:hidden">{skill.uses}</td>
            <td className="max-sm:hidden">
              <StateMark state={skill.state} />
            </td>
            <td className="text-right! text-muted max-md:hidden">
              {skill.uses === 0 ? 'never' : <Ago at={new Date(skill.last_used * 1_000).toISOString()} />}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
