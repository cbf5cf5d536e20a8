import type { Hook } from '@capstan/core/contracts/hook';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { removeHook, replaceHook } from '../api/hooks.ts';
import { ConfirmButton, type ConfirmQuestion } from '../shared/confirm-button.tsx';
import { Button } from '../shared/parts.tsx';
import { ProblemView } from '../shared/problem-view.tsx';
import { settingsOf } from './form-model.ts';
import { HookForm } from './hook-form.tsx';

function removeQuestion({ name, pipeline }: Hook): ConfirmQuestion {
  return {
    title: `Delete the hook ${name}?`,
    about: (
      <p className="break-words">
        Its sender is refused from now on, and starts no more runs of {pipeline}. Its log is deleted; its runs
        continue.
      </p>
    ),
    confirm: 'Delete the hook',
    keep: 'Keep the hook',
  };
}

/** Changes of a hook: its settings, its switch, its end. */
export function HookControls({ hook }: { readonly hook: Hook }): ReactElement {
  const { name, enabled } = hook;
  const queries = useQueryClient();
  const [isEdited, setEdited] = useState(false);
  const onSettled = () => queries.invalidateQueries({ queryKey: ['hooks'], exact: true });
  const turn = useMutation({
    mutationFn: () => replaceHook(name, { ...settingsOf(hook), enabled: !enabled }),
    onSettled,
  });
  const remove = useMutation({ mutationFn: () => removeHook(name), onSettled });
  const error = turn.error ?? remove.error;
  return (
    <>
      <Button aria-label={`Edit ${name}`} onClick={() => setEdited(true)}>
        Edit …
      </Button>
      <Button
        aria-label={`Switch ${enabled ? 'off' : 'on'} ${name}`}
        disabled={turn.isPending}
        onClick={() => turn.mutate()}
      >
        {enabled ? 'Switch off' : 'Switch on'}
      </Button>
      <ConfirmButton
        question={removeQuestion(hook)}
        onConfirm={() => remove.mutate()}
        aria-label={`Delete ${name}`}
      >
        Delete …
      </ConfirmButton>
      {isEdited ? (
        <HookForm of={hook} onDone={() => setEdited(false)} onClose={() => setEdited(false)} />
      ) : null}
      {error === null ? null : (
        <div className="basis-full">
          <ProblemView error={error} />
        </div>
      )}
    </>
  );
}
