// A machine whose configuration has the section `commands` alone, and a control plane that knows it.
import { chmodSync } from 'node:fs';
import { type Machine, makeMachine } from '../machine.ts';
import { type Central, type CentralOptions, startCentral } from './central.ts';

export type CommandsMachine = Machine & { readonly central: Central; readonly token: string };

export type CommandsMachineOptions = {
  /** Keys of the section. */
  commands?: Readonly<Record<string, unknown>>;
  /** Other sections beside it. */
  sections?: Readonly<Record<string, unknown>>;
  central?: CentralOptions;
};

export const commandsToken = 'tok-3f9c';

export async function makeCommandsMachine(options: CommandsMachineOptions = {}): Promise<CommandsMachine> {
  const { commands = {}, sections = {}, central: about = {} } = options;
  const central = await startCentral({ machines: { 7: commandsToken }, ...about });
  const own = { machine_id: 7, token: commandsToken, central_base_url: central.url };
  const machine = makeMachine({ ...sections, commands: { ...own, ...commands } });
  chmodSync(`${machine.root}/etc/reeve.yaml`, 0o600);
  return { ...machine, central, token: commandsToken };
}
