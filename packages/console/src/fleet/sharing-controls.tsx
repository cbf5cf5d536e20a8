import type { Instance, SharedWith } from '@capstan/core/contracts/capability';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactElement, useId, useState } from 'react';
import { changeSharing } from '../api/capabilities.ts';
import { Dialog } from '../shared/dialog.tsx';
import { Button, fieldClass } from '../shared/parts.tsx';
import { ProblemView } from '../shared/problem-view.tsx';
import { readSharing, writeSharing } from './instance-model.ts';

/** Shares an instance with other projects, or takes that back. */
export function SharingControls({ instance }: { readonly instance: Instance }): ReactElement {
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const change = useMutation({
    mutationFn: (wanted: SharedWith) => changeSharing(instance, wanted),
    onSuccess: () => {
      setOpen(false);
      return Promise.all([
        queries.invalidateQueries({ queryKey: ['capability', instance.name] }),
        queries.invalidateQueries({ queryKey: ['capabilities'] }),
      ]);
    },
  });
  return (
    <>
      <Button onClick={() => setOpen(true)}>Share …</Button>
      {isOpen ? (
        <SharingDialog
          instance={instance}
          isPending={change.isPending}
          error={change.error}
          onShare={(wanted) => change.mutate(wanted)}
          onClose={() => setOpen(false)}
        />
      ) : null}
    </>
  );
}

interface SharingDialogProps {
  readonly instance: Instance;
  readonly isPending: boolean;
  readonly error: Error | null;
  readonly onShare: (wanted: SharedWith) => void;
  readonly onClose: () => void;
}

function SharingDialog({ instance, isPending, error, onShare, onClose }: SharingDialogProps): ReactElement {
  const form = useId();
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    onShare(readSharing(String(new FormData(event.currentTarget).get('projects') ?? '')));
  };
  return (
    <Dialog
      title="Share this instance?"
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Change nothing</Button>
          <Button look="primary" type="submit" form={form} disabled={isPending}>
            Save
          </Button>
        </>
      }
    >
      <form id={form} onSubmit={submit} className="flex flex-col gap-3 text-sm">
        <p>
          {instance.name} at <code className="break-words">{instance.endpoint}</code> serves its own project.
          The projects that you name here may call it too, and pay for their calls.
        </p>
        <label className="flex flex-col gap-1 font-medium">
          Other projects
          <input
            name="projects"
            defaultValue={writeSharing(instance.shared_with)}
            placeholder="Ids, or all; empty: none"
            className={`${fieldClass} h-9`}
          />
        </label>
        {error === null ? null : <ProblemView error={error} />}
      </form>
    </Dialog>
  );
}
