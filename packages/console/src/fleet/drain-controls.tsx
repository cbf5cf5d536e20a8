import type { Instance } from '@capstan/core/contracts/capability';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, type ReactNode, useId, useState } from 'react';
import { changeDrain, type DrainChange } from '../api/capabilities.ts';
import { Dialog } from '../shared/dialog.tsx';
import { Button, fieldClass } from '../shared/parts.tsx';
import { ProblemView } from '../shared/problem-view.tsx';

/** Drains an instance, with a reason, or ends its drain. */
export function DrainControls({ instance }: { readonly instance: Instance }): ReactElement | null {
  const isDrained = instance.drain !== undefined;
  if (!isDrained && (instance.state === 'deregistered' || instance.state === 'evicted')) return null;
  return (
    <DrainButtons what="instance" isDrained={isDrained} change={(wanted) => changeDrain(instance, wanted)}>
      {instance.name} at <code className="break-words">{instance.endpoint}</code> gets no new calls. Its{' '}
      {instance.in_flight} open calls continue. A restart does not end the drain; Undrain does.
    </DrainButtons>
  );
}

interface DrainButtonsProps {
  readonly what: 'instance' | 'host';
  readonly isDrained: boolean;
  readonly change: (wanted: DrainChange) => Promise<unknown>;
  /** What a drain changes. */
  readonly children: ReactNode;
}

/** Drains, with a reason, or ends the drain. */
export function DrainButtons({ what, isDrained, change, children }: DrainButtonsProps): ReactElement {
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const { mutate, isPending, error } = useMutation({
    mutationFn: change,
    onSuccess: () => {
      setOpen(false);
      const keys = [['hosts'], ['capability'], ['capabilities']];
      return Promise.all(keys.map((queryKey) => queries.invalidateQueries({ queryKey })));
    },
  });
  if (isDrained) {
    return (
      <>
        <Button disabled={isPending} onClick={() => mutate({ act: 'undrain' })}>
          Undrain
        </Button>
        {error === null ? null : <ProblemView error={error} />}
      </>
    );
  }
  const dialog: DrainDialogProps = {
    what,
    children,
    isPending,
    error,
    onDrain: (reason) => mutate({ act: 'drain', reason }),
    onClose: () => setOpen(false),
  };
  return (
    <>
      <Button onClick={() => setOpen(true)}>Drain …</Button>
      {isOpen ? <DrainDialog {...dialog} /> : null}
    </>
  );
}

interface DrainDialogProps extends Pick<DrainButtonsProps, 'what' | 'children'> {
  readonly isPending: boolean;
  readonly error: Error | null;
  readonly onDrain: (reason: string) => void;
  readonly onClose: () => void;
}

function DrainDialog({ what, children, isPending, error, onDrain, onClose }: DrainDialogProps): ReactElement {
  const form = useId();
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    onDrain(String(new FormData(event.currentTarget).get('reason') ?? '').trim());
  };
  return (
    <Dialog
      title={`Drain this ${what}?`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Keep its calls</Button>
          <Button look="primary" type="submit" form={form} disabled={isPending}>
            Drain the {what}
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-3 text-sm">
        <p>{children}</p>
        <label className="flex flex-col gap-1 font-medium">
          Reason (optional)
          <input
            name="reason"
            maxLength={1_000}
            placeholder="Shown in the fleet"
            className={`${fieldClass} h-9`}
          />
        </label>
        {error === null ? null : <ProblemView error={error} />}
      </form>
    </Dialog>
  );
}
