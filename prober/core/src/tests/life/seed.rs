//! The dependents on the seed: what the replicas and others do to them.

use std::sync::Arc;

use rand::RngExt;

use super::Seconds;
use super::driver::{Life, NAMES};
use super::plan::Mishap;
use crate::refusal::Refusal;
use crate::replicas::{DependentState, Observed, PlannedWrite};
use crate::tests::scene::running;

/// The replicas that it has to have after a restore.
fn returns_to(object: &Observed) -> i32 {
    let Observed {
        replicas, marks, ..
    } = object;
    match marks.remembered() {
        _ if *replicas > 0 && !marks.held_down => *replicas,
        Some(remembered) => remembered,
        None => 1.max(*replicas),
    }
}

impl Life {
    /// Each replica sees it after a while.
    pub fn put(&mut self, place: usize, object: Option<Observed>) {
        self.version += 1;
        self.objects[place] = object.map(|object| Observed {
            resource_version: self.version.to_string(),
            ..object
        });
        for by in 0..2 {
            let lag = self.draw((0.0, self.plan.view_lag));
            self.after(lag, move |life| life.view(by));
        }
    }

    /// Others write it; its pods follow at once.
    pub fn others_put(&mut self, place: usize, who: &str, mut object: Observed) {
        object.ready = object.replicas;
        self.expected[place] = returns_to(&object);
        let is_up = |object: &Observed| object.replicas > 0 && !object.marks.held_down;
        let was_up = self.objects[place].as_ref().is_some_and(is_up);
        let is_off = object.replicas == 0 && !object.marks.held_down;
        self.taken_off[place] = is_off && (was_up || self.taken_off[place]);
        let Observed {
            replicas, marks, ..
        } = &object;
        self.note(format!("{who}: {} {replicas} {marks:?}", NAMES[place]));
        self.put(place, Some(object));
    }

    /// Makes a write of a replica, as the API server does.
    pub fn write(
        &mut self,
        by: usize,
        place: usize,
        change: &PlannedWrite,
    ) -> Result<Arc<Observed>, Refusal> {
        let now = self.objects[place].as_ref().ok_or(Refusal::NotFound)?;
        let version = |object: &Observed| (object.uid.clone(), object.resource_version.clone());
        if version(now) != version(&change.base) {
            self.conflicts += 1;
            return Err(Refusal::Conflict(DependentState::Unknown));
        }
        let ready = now.ready;
        let mut after = change.after((self.version + 1).to_string());
        after.ready = ready;
        let pods = match change.write.replicas {
            Some(0) => Some((0.0, self.plan.pods_linger)),
            Some(_) => Some((0.5, 8.0)),
            None => None,
        };
        if let Some(pods) = pods {
            let takes = self.draw(pods);
            let version = after.resource_version.clone();
            self.after(takes, move |life| life.pods_follow(place, &version));
        }
        self.note(format!("{by} writes {} {:?}", NAMES[place], change.write));
        self.made.push((self.t, by, place, change.write.replicas));
        self.check_written(by, place, change, &after);
        if change.write.replicas.is_none() {
            self.expected[place] = returns_to(&after);
        }
        self.put(place, Some(after.clone()));
        Ok(Arc::new(after))
    }

    fn pods_follow(&mut self, place: usize, version: &str) {
        if let Some(mut object) = self.objects[place].clone()
            && object.resource_version == version
        {
            object.ready = object.replicas;
            self.put(place, Some(object));
        }
    }

    pub fn edit(&mut self) {
        let place = self.mishaps.random_range(0..self.objects.len());
        let Some(mut object) = self.objects[place].clone() else {
            return;
        };
        match self.mishaps.random_range(0..8) {
            0 => object.replicas = 1,
            1 => object.marks.ignored = !object.marks.ignored,
            2 | 3 => object.replicas = 2,
            4 => object.marks.held_down = false,
            5 => object.marks.replicas = None,
            6 => object.replicas = 0,
            // A Go replica has left its memory.
            _ if object.marks.held_down => {}
            _ => (object.replicas, object.marks.replicas) = (0, Some("2".into())),
        }
        self.others_put(place, "somebody", object);
    }

    pub fn recreate(&mut self) {
        let place = self.mishaps.random_range(0..self.objects.len());
        if self.mishaps.random() && self.objects[place].is_some() {
            self.note(format!("somebody deletes {}", NAMES[place]));
            self.put(place, None);
        } else {
            self.create(place);
        }
    }

    pub fn create(&mut self, place: usize) {
        let uid = format!("created-{}", self.version);
        self.others_put(place, "created", Observed { uid, ..running(2) });
    }

    /// gardenlet sets the replicas of what is not held down.
    pub fn gardenlet(&mut self) {
        for place in 0..self.objects.len() {
            if let Some(mut object) = self.objects[place].clone()
                && !object.marks.held_down
                && !object.marks.ignored
                && object.replicas != 2
                && self.mishaps.random::<f64>() < 0.2
                && self.plan.has(Mishap::Edit)
            {
                object.replicas = 2;
                self.others_put(place, "gardenlet", object);
            }
        }
        self.after(47.0, Self::gardenlet);
    }

    /// A replica of the Go original that leads: it takes machine-controller-manager down first, and
    /// writes each dependent twice.
    pub fn go(&mut self) {
        let mut next = 35.0;
        if self.nodes.is_outage(self.t, self.plan.grace * 0.75) {
            self.go_takes_down(1);
            self.go_takes_down(2);
            self.after(5.0, |life| life.go_takes_down(0));
            next += self.mishaps.random_range(0.0..6.0);
        } else if !self.nodes.has_one_candidate(self.t) {
            for place in 0..3 {
                self.after(35.0 * place as Seconds, move |life| {
                    life.go_brings_back(place)
                });
            }
            next = 90.0;
        }
        self.after(next, Self::go);
    }

    fn go_takes_down(&mut self, place: usize) {
        if let Some(mut object) = self.objects[place].clone()
            && object.replicas > 0
            && !object.marks.ignored
        {
            object.marks.replicas = Some(object.replicas.to_string());
            object.marks.held_down = true;
            self.go_writes_twice(place, object, |object| object.replicas = 0);
        }
    }

    fn go_brings_back(&mut self, place: usize) {
        let Some(mut object) = self.objects[place].clone() else {
            return;
        };
        if object.replicas == 0 && !object.marks.ignored {
            object.replicas = object.marks.remembered().unwrap_or(1);
            self.go_writes_twice(place, object, |object| object.marks.held_down = false);
        } else if object.marks.held_down {
            object.marks.held_down = false;
            self.others_put(place, "Go", object);
        }
    }

    fn go_writes_twice(&mut self, place: usize, object: Observed, second: fn(&mut Observed)) {
        self.others_put(place, "Go", object);
        let takes = self.mishaps.random_range(0.02..0.4);
        self.after(takes, move |life| {
            if let Some(mut object) = life.objects[place].clone() {
                second(&mut object);
                life.others_put(place, "Go", object);
            }
        });
    }
}
