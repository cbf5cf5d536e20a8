/** Forms of budgets. The part of the calls is picked from a list where there is one, so that no id is typed. */

import { type UseMutationResult, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useId, useState } from 'react';
import { capabilitiesQuery } from '../../api/capabilities.ts';
import { useKeys } from '../../api/key-names.ts';
import { putScopedBudget } from '../../api/money.ts';
import { budgetPeriods, describePeriod } from '../../budget/budget-model.ts';
import { Dialog } from '../../shared/dialog.tsx';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { type BudgetKind, budgetKinds, readUsd, scopeOf } from './budget-scope.ts';

const words: Readonly<Record<BudgetKind, string>> = {
  label: 'of a label',
  key: 'of a key',
  capability: 'of a capability',
  user: 'of a user',
};

export function NewBudget({ onDone }: { readonly onDone: () => void }): ReactElement {
  const queries = useQueryClient();
  const [kind, setKind] = useState<BudgetKind>('label');
  const put = useMutation({
    mutationFn: putScopedBudget,
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['budgets', 'scoped'] });
      onDone();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    put.mutate({
      scope: scopeOf(kind, form),
      period: budgetPeriods.find((one) => one === form.get('period')) ?? 'day',
      limit_usd: readUsd(form),
    });
  };
  return (
    <form onSubmit={submit} className="mb-3 flex flex-wrap items-center gap-2 text-sm">
      <select
        aria-label="Kind of budget"
        className={fieldClass}
        value={kind}
        onChange={({ target }) => setKind(budgetKinds.find((one) => one === target.value) ?? 'label')}
      >
        {budgetKinds.map((one) => (
          <option key={one} value={one}>
            {words[one]}
          </option>
        ))}
      </select>
      <PartField key={kind} kind={kind} />
      <select name="period" aria-label="Period of the budget" className={fieldClass}>
        {budgetPeriods.map((one) => (
          <option key={one} value={one}>
            {describePeriod(one)}
          </option>
        ))}
      </select>
      <UsdField />
      <Button type="submit" look="primary" disabled={put.isPending}>
        Set
      </Button>
      {put.error === null ? null : <ProblemView error={put.error} />}
    </form>
  );
}

/** The soft mark is null where there is none. */
export interface Limits {
  readonly usd: number;
  readonly soft: number | null;
}

export interface LimitDialogProps {
  readonly title: string;
  readonly about: string;
  /** The present ones. */
  readonly limits: Limits;
  readonly change: Pick<UseMutationResult<unknown, Error, Limits>, 'mutate' | 'isPending' | 'error'>;
  readonly onClose: () => void;
}

/** Changes a limit where it is seen. */
export function LimitDialog({ title, about, limits, change, onClose }: LimitDialogProps): ReactElement {
  const form = useId();
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const soft = limits.soft === null ? null : Number(fields.get('soft')) / 100;
    change.mutate({ usd: readUsd(fields), soft });
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Keep the limit</Button>
          <Button look="primary" type="submit" form={form} disabled={change.isPending}>
            Set the limit
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-3 text-sm">
        <p className="text-muted">{about}</p>
        <p className="flex items-center gap-2 font-medium">
          <span aria-hidden="true">Limit (USD)</span> <UsdField usd={limits.usd} />
        </p>
        {limits.soft === null ? null : (
          <label className="flex items-center gap-2 font-medium">
            Reported at
            <input
              name="soft"
              type="number"
              min="1"
              max="99"
              step="any"
              required
              defaultValue={Math.round(limits.soft * 1e4) / 100}
              className={`${fieldClass} w-20`}
            />
            % of it
          </label>
        )}
        {change.error === null ? null : <ProblemView error={change.error} />}
      </form>
    </Dialog>
  );
}

function UsdField({ usd }: { readonly usd?: number }): ReactElement {
  return (
    <input
      name="usd"
      type="number"
      min="0"
      step="any"
      required
      aria-label="Limit (USD)"
      placeholder="USD"
      defaultValue={usd}
      className={`${fieldClass} w-28`}
    />
  );
}

function PartField({ kind }: { readonly kind: BudgetKind }): ReactElement {
  switch (kind) {
    case 'label':
      return (
        <>
          <TextField name="name" label="Name of the label" example="team" />
          <span aria-hidden="true">=</span>
          <TextField name="value" label="Value of the label" example="ads" />
        </>
      );
    case 'key':
      return <KeyField />;
    case 'capability':
      return <CapabilityField />;
    case 'user':
      return <TextField name="value" label="User" example="anna" />;
  }
}

interface TextFieldProps {
  readonly name: string;
  readonly label: string;
  readonly example: string;
  readonly list?: string;
}

function TextField({ name, label, example, ...list }: TextFieldProps): ReactElement {
  return (
    <input
      name={name}
      required
      aria-label={label}
      placeholder={example}
      className={`${fieldClass} w-36`}
      {...list}
    />
  );
}

function KeyField(): ReactElement {
  const keys = useKeys();
  if (keys === null) return <TextField name="value" label="Id of the key" example="key_…" />;
  return (
    <select name="value" required aria-label="Key" className={`${fieldClass} max-w-64`}>
      {keys
        .filter(({ revoked_at }) => revoked_at === null)
        .map(({ key_id, name }) => (
          <option key={key_id} value={key_id}>
            {name} ({key_id})
          </option>
        ))}
    </select>
  );
}

/** A name without an instance may be typed too. */
function CapabilityField(): ReactElement {
  const list = useId();
  const known = useQuery(capabilitiesQuery()).data?.items ?? [];
  return (
    <>
      <TextField name="value" label="Capability" example="model.top" list={list} />
      <datalist id={list}>
        {known.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  );
}
