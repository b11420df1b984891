//! What goes wrong with replicas, operators and configs, and how all of it is put right.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;

use super::driver::Life;
use super::plan::{Leadership, Mishap};
use super::{Seconds, at};
use crate::config::Config;
use crate::options::ResolvedOptions;
use crate::plan::ByDirection;
use crate::shoot::Owner;
use crate::tests::scene::change_settings;

impl Life {
    pub fn mishap(&mut self) {
        self.elect();
        if self.is_calm() {
            return self.after(5.0, Self::mishap);
        }
        let next = self.mishaps.random_range(1.0..30.0);
        self.after(next, Self::mishap);
        if self.plan.mishaps.is_empty() || self.mishaps.random::<f64>() > 0.6 {
            return;
        }
        // Edits and changes of the lead are three times as frequent as others.
        let frequent = [Mishap::Edit, Mishap::LeadFlaps];
        let weight = |mishap: &Mishap| if frequent.contains(mishap) { 3 } else { 1 };
        let kinds = self.plan.mishaps.iter();
        let kinds: Vec<_> = kinds.flat_map(|kind| vec![*kind; weight(kind)]).collect();
        let by = if self.plan.alone {
            0
        } else {
            self.mishaps.random_range(0..2)
        };
        match kinds[self.mishaps.random_range(0..kinds.len())] {
            Mishap::Edit => self.edit(),
            Mishap::Pause => self.pause(),
            Mishap::Crash => self.crash(by),
            Mishap::Suspend => {
                let lasts = self.mishaps.random_range(1.0..60.0);
                self.suspend(by, self.t + lasts);
            }
            Mishap::Reload => self.reload_both(),
            Mishap::Blind => self.lose_sight(by),
            Mishap::Stale => self.go_stale(by),
            Mishap::Moves => self.moves(false),
            Mishap::Recreate => self.recreate(),
            Mishap::Owner => self.owner_changes(by),
            Mishap::Settings => self.settings_change(),
            Mishap::Options => self.options_change(),
            Mishap::LeadFlaps => {
                let (times, gap) = (
                    self.mishaps.random_range(1..12),
                    self.mishaps.random_range(0.2..4.0),
                );
                for time in 0..times {
                    self.after(f64::from(time) * gap, Self::flap_lead);
                }
            }
        }
    }

    /// Whoever runs leads, if nobody does.
    pub fn elect(&mut self) {
        let vacant = !self.replicas.iter().any(|replica| replica.env.leads);
        let t = self.t;
        let works = self
            .replicas
            .iter()
            .position(|replica| replica.machine.is_some() && replica.suspended_until <= t);
        if let Some(by) = works.filter(|_| vacant && self.plan.leadership == Leadership::One) {
            self.lead(by);
            self.wake(by);
        }
    }

    pub fn lead(&mut self, by: usize) {
        let replica = &mut self.replicas[by];
        replica.env.leads = true;
        replica.env.seed_since.up = Some(at(self.t));
        replica.memory.changed_since = self.t;
        self.note(format!("{by} leads"));
    }

    fn flap_lead(&mut self) {
        let from = self.replicas.iter().position(|replica| replica.env.leads);
        if let Some(from) = from {
            self.replicas[from].env.leads = false;
            self.replicas[from].memory.changed_since = self.t;
        }
        let to = from.map_or(0, |from| 1 - from);
        if self.replicas[to].machine.is_some() {
            self.lead(to);
        }
        (0..2).for_each(|by| self.wake(by));
    }

    pub fn pause(&mut self) {
        self.paused = (!self.paused.0, self.t);
        self.note(format!("paused: {}", self.paused.0));
        self.show_shoot();
    }

    /// The shoot moves to another seed, or comes back.
    fn moves(&mut self, here: bool) {
        if self.is_ours.0 == here {
            return;
        }
        self.is_ours = (here, self.t);
        self.note(format!("is here: {here}"));
        self.show_shoot();
        if !here {
            let back = self.mishaps.random_range(5.0..100.0);
            self.after(back, |life| life.moves(true));
        }
    }

    fn show_shoot(&mut self) {
        for by in 0..2 {
            let lag = self.draw((0.0, self.plan.view_lag));
            self.after(lag, move |life| life.view_shoot(by));
        }
    }

    fn crash(&mut self, by: usize) {
        let back = self.mishaps.random_range(0.5..25.0);
        if self.stop(by) {
            self.after(back, move |life| life.start(by));
        }
    }

    /// Its process is gone. Returns false if there was none.
    pub fn stop(&mut self, by: usize) -> bool {
        self.renew_lease();
        let replica = &mut self.replicas[by];
        let ran = replica.machine.take().is_some();
        if ran {
            replica.awaits.clear();
            replica.env.leads = false;
            self.note(format!("{by} stops"));
        }
        ran
    }

    pub fn suspend(&mut self, by: usize, until: Seconds) {
        self.renew_lease();
        self.replicas[by].suspended_until = until;
        self.note(format!("{by} is suspended until {until:.1}"));
        self.at(until + 2e-6, move |life| life.resume(by));
    }

    fn resume(&mut self, by: usize) {
        let replica = &mut self.replicas[by];
        if replica.suspended_until > self.t {
            return;
        }
        if replica.sees_clusters() {
            replica.see_clusters(self.t);
        }
        self.after(0.0, move |life| life.view(by));
    }

    fn reload_both(&mut self) {
        let mut config = Config::clone(&self.config);
        match self.mishaps.random_range(0..5) {
            0 => config.dependents.reverse(),
            1 => drop(config.dependents.pop()),
            2 => config.dependents.swap(0, 1),
            _ => {}
        }
        let config = Arc::new(config);
        for by in 0..2 {
            let lag = self.mishaps.random_range(0.0..40.0);
            let lag = f64::min(lag, self.plan.calm_from() - self.t);
            let config = Arc::clone(&config);
            self.after(lag, move |life| life.reload(by, config));
        }
    }

    /// Another list of dependents begins another life of the machine.
    pub fn reload(&mut self, by: usize, config: Arc<Config>) {
        let replica = &mut self.replicas[by];
        let names = |config: &Config| -> Vec<_> {
            let dependents = config.dependents.iter();
            dependents.map(|one| one.resource.name.clone()).collect()
        };
        let after = names(&config);
        let is_other = names(&replica.env.config) != after;
        replica.env.config = config;
        replica.memory.changed_since = self.t;
        self.note(format!("{by} reloads {after:?}"));
        if is_other && self.replicas[by].machine.take().is_some() {
            self.replicas[by].awaits.clear();
            self.start(by);
        }
        self.wake(by);
    }

    /// Loses its view of objects and Machines, of Clusters, or of namespaces, which say whether the
    /// shoot is paused; or several of them.
    fn lose_sight(&mut self, by: usize) {
        let back = self.mishaps.random_range(0.2..60.0);
        let [objects, clusters, namespaces]: [bool; 3] = self.mishaps.random();
        let replica = &mut self.replicas[by];
        if objects {
            replica.view = None;
        }
        if clusters {
            replica.env.seed_since = ByDirection::default();
        }
        if namespaces {
            replica.env.paused = None;
        }
        self.note(format!(
            "{by} is blind for {back:.1} s: objects {objects}, Clusters {clusters}, namespaces {namespaces}"
        ));
        self.after(back, move |life| life.view_all(by));
        self.wake(by);
    }

    fn go_stale(&mut self, by: usize) {
        let until = self.t + self.mishaps.random_range(10.0..60.0);
        self.replicas[by].stale = self.t..until;
        self.note(format!("{by} is shown nothing new until {until:.1}"));
        self.at(until, move |life| life.view_shoot(by));
        self.at(until, move |life| life.view(by));
    }

    fn owner_changes(&mut self, by: usize) {
        let next = match (self.replicas[by].env.owner, self.mishaps.random_range(0..4)) {
            (Owner::Here, 0 | 1) => Owner::Unknown,
            (Owner::Here, 2) => Owner::LeaderOnly,
            _ => Owner::Here,
        };
        self.set_owner(by, next);
        self.wake(by);
    }

    fn set_owner(&mut self, by: usize, next: Owner) {
        let replica = &mut self.replicas[by];
        let before = std::mem::replace(&mut replica.env.owner, next);
        let protects = replica.env.leads && before == Owner::LeaderOnly;
        match next {
            Owner::Here if protects => replica.memory.free_since.up = self.t,
            Owner::Here if before != next => replica.memory.is_free(self.t),
            Owner::LeaderOnly if before == Owner::Unknown => replica.memory.is_free(self.t),
            _ => {}
        }
        self.note(format!("{by}: the owner record says {next:?}"));
    }

    fn settings_change(&mut self) {
        self.note("settings change");
        for by in 0..2 {
            let replica = &mut self.replicas[by];
            change_settings(&mut replica.env);
            replica.memory.changed_since = self.t;
            self.wake(by);
        }
    }

    fn options_change(&mut self) {
        let seconds = [0, 0, 20, 120][self.mishaps.random_range(0..4)];
        let (only_held_down, protects) = (self.mishaps.random(), self.mishaps.random());
        self.note(format!(
            "options: only held down {only_held_down}, standby protects {protects}, stabilization {seconds} s"
        ));
        for by in 0..2 {
            let options = &mut self.replicas[by].env.options;
            options.restore_only_held_down.value = only_held_down;
            options.standby_protects.value = protects;
            options.scale_up_stabilization.value = Duration::from_secs(seconds);
            self.wake(by);
        }
    }

    /// Operators put right what they and others did.
    pub fn calm_down(&mut self) {
        self.note("calm");
        (self.paused, self.is_ours) = ((false, self.t), (true, self.t));
        for place in 0..self.objects.len() {
            match self.objects[place].clone() {
                None => self.create(place),
                Some(mut object) => {
                    let forgotten =
                        self.plan.only_held_down && object.replicas == 0 && !object.marks.held_down;
                    if forgotten {
                        object.replicas = 2;
                    }
                    if forgotten || object.marks.ignored {
                        object.marks.ignored = false;
                        self.others_put(place, "operators", object);
                    }
                }
            }
        }
        for by in 0..2 {
            if self.plan.has(Mishap::Owner) {
                self.set_owner(by, Owner::Here);
            }
            self.replicas[by].env.options = ResolvedOptions::resolve(&self.config, None, None);
            self.replicas[by].stale = 0.0..0.0;
            self.after(0.0, move |life| life.view_all(by));
            self.after(0.0, move |life| life.view_shoot(by));
            self.after(0.0, move |life| life.view(by));
            if self.plan.has(Mishap::Reload) {
                let config = Arc::clone(&self.config);
                self.after(0.0, move |life| life.reload(by, config));
            }
            self.wake(by);
        }
    }
}
