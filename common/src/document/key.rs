//! The keys of a config file: one table for the reader and for the documentation.

#[derive(Clone, Copy, Debug)]
pub struct ConfigKey {
    pub name: &'static str,
    /// What it takes, also in the words of its errors.
    pub takes: &'static str,
    /// In YAML, as it would be written in the file; empty: the key is required.
    pub default: &'static str,
    pub meaning: &'static str,
}

/// Declares the keys of an object of a config file, and the function that reads it into a struct.
/// A row is `field = reader of the value, key, takes, default, meaning`. Of an object that is `strict`
/// a key that is not in the table is an error.
#[macro_export]
macro_rules! config_object {
    (strict $keys:ident, $($rest:tt)*) => {
        $crate::config_object!(@ refuse_unknown, $keys, $($rest)*);
    };
    ($keys:ident, $($rest:tt)*) => {
        $crate::config_object!(@ warn_of_unknown, $keys, $($rest)*);
    };
    (@ $check:ident, $keys:ident, $reader:ident -> $name:ident {$(
        $field:ident = $read:expr, $key:literal, $takes:literal, $default:literal, $meaning:literal;
    )*}) => {
        pub const $keys: &[$crate::document::ConfigKey] = &[$($crate::document::ConfigKey {
            name: $key,
            takes: $takes,
            default: $default,
            meaning: $meaning,
        }),*];

        pub(super) fn $reader(value: &$crate::document::ConfigValue<'_>) -> Option<$name> {
            let object = value.object()?;
            object.$check($keys);
            let mut keys = $keys.iter();
            // Everything is read before the first `?` behind a field, so that all errors are found.
            $(let $field = object.read(keys.next()?, $read);)*
            Some($name { $($field: $field?),* })
        }
    };
}
