//! Backend descriptors: created, given attributes, finalized, destroyed when nothing refers to them.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

use cudarc::cudnn::sys::{
    cudnnBackendAttributeName_t as Name, cudnnBackendAttributeType_t as Type, cudnnBackendDescriptorType_t as Kind,
    cudnnDataType_t as DataType,
};

use super::api::Api;
use crate::engine::EngineError;
use crate::shape::Element;

/// A backend descriptor together with those that it refers to.
#[derive(Debug)]
pub(super) struct Descriptor {
    api: &'static Api,
    raw: *mut c_void,
    parts: Vec<Arc<Self>>,
}

// SAFETY: a descriptor is not changed after it is finalized, before it has one owner, and cuDNN ties none to a thread.
unsafe impl Send for Descriptor {}
// SAFETY: as above.
unsafe impl Sync for Descriptor {}

/// Value of an attribute.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Integers(&'a [i64]),
    Float(f32),
    Bool(bool),
    Element(Element),
    /// An enumeration's value.
    Mode(Type, c_int),
    Handle(*mut c_void),
    /// Addresses on the device.
    Addresses(&'a [u64]),
    Parts(&'a [Arc<Descriptor>]),
}

impl Descriptor {
    /// A descriptor that is still to be filled, by [`Self::set`] or by the library.
    pub(super) fn empty(api: &'static Api, kind: Kind) -> Result<Self, EngineError> {
        let mut raw = ptr::null_mut();
        // SAFETY: the function writes one pointer.
        let status = unsafe { (api.create_descriptor)(kind as c_int, &raw mut raw) };
        api.check("cudnnBackendCreateDescriptor", status)?;
        Ok(Self { api, raw, parts: Vec::new() })
    }

    /// A finalized descriptor.
    pub(super) fn new(
        api: &'static Api,
        kind: Kind,
        attributes: &[(Name, Value<'_>)],
    ) -> Result<Arc<Self>, EngineError> {
        let mut descriptor = Self::empty(api, kind)?;
        for &(name, value) in attributes {
            descriptor.set(name, value)?;
        }
        // SAFETY: the descriptor is alive.
        let status = unsafe { (api.finalize)(descriptor.raw) };
        api.check(&format!("{kind:?}"), status)?;
        Ok(Arc::new(descriptor))
    }

    fn set(&mut self, name: Name, value: Value<'_>) -> Result<(), EngineError> {
        match value {
            Value::Integers(values) => self.set_raw(name, Type::CUDNN_TYPE_INT64, values),
            Value::Float(value) => self.set_raw(name, Type::CUDNN_TYPE_FLOAT, &[value]),
            Value::Bool(value) => self.set_raw(name, Type::CUDNN_TYPE_BOOLEAN, &[value]),
            Value::Element(element) => self.set_raw(name, Type::CUDNN_TYPE_DATA_TYPE, &[data_type(element) as c_int]),
            Value::Mode(kind, value) => self.set_raw(name, kind, &[value]),
            Value::Handle(handle) => self.set_raw(name, Type::CUDNN_TYPE_HANDLE, &[handle]),
            Value::Addresses(values) => self.set_raw(name, Type::CUDNN_TYPE_VOID_PTR, values),
            Value::Parts(parts) => {
                self.parts.extend_from_slice(parts);
                let raw: Vec<_> = parts.iter().map(|part| part.raw).collect();
                self.set_raw(name, Type::CUDNN_TYPE_BACKEND_DESCRIPTOR, &raw)
            }
        }
    }

    fn set_raw<T: Copy>(&mut self, name: Name, kind: Type, values: &[T]) -> Result<(), EngineError> {
        let (api, count) = (self.api, values.len() as i64);
        // SAFETY: the values are of the type that `kind` names, and the library copies them.
        let status =
            unsafe { (api.set_attribute)(self.raw, name as c_int, kind as c_int, count, values.as_ptr().cast()) };
        api.check(&format!("{name:?}"), status)
    }

    /// Up to `most` integers of an attribute.
    pub(super) fn integers(&self, name: Name, most: usize) -> Result<Vec<i64>, EngineError> {
        self.get_raw(name, Type::CUDNN_TYPE_INT64, vec![0_i64; most])
    }

    /// Up to `most` values of an enumeration.
    pub(super) fn modes(&self, name: Name, kind: Type, most: usize) -> Result<Vec<c_int>, EngineError> {
        self.get_raw(name, kind, vec![0; most])
    }

    /// How many descriptors an attribute holds.
    pub(super) fn count(&self, name: Name) -> Result<usize, EngineError> {
        let (mut count, kind) = (0, Type::CUDNN_TYPE_BACKEND_DESCRIPTOR as c_int);
        // SAFETY: no value is asked for, so nothing but the count is written.
        let status =
            unsafe { (self.api.get_attribute)(self.raw, name as c_int, kind, 0, &raw mut count, ptr::null_mut()) };
        self.api.check(&format!("{name:?}"), status)?;
        Ok(count.max(0) as usize)
    }

    /// Up to `most` descriptors of an attribute, all of one kind. They stay valid without this one.
    pub(super) fn descriptors(&self, name: Name, kind: Kind, most: usize) -> Result<Vec<Self>, EngineError> {
        let mut found = (0..most).map(|_| Self::empty(self.api, kind)).collect::<Result<Vec<_>, _>>()?;
        let raw: Vec<_> = found.iter().map(|descriptor| descriptor.raw).collect();
        let n_found = self.get_raw(name, Type::CUDNN_TYPE_BACKEND_DESCRIPTOR, raw)?.len();
        found.truncate(n_found);
        Ok(found)
    }

    fn get_raw<T: Copy>(&self, name: Name, kind: Type, mut values: Vec<T>) -> Result<Vec<T>, EngineError> {
        let (mut count, most) = (0, values.len() as i64);
        // SAFETY: the library writes at most `most` values of the type that `kind` names.
        let status = unsafe {
            (self.api.get_attribute)(
                self.raw,
                name as c_int,
                kind as c_int,
                most,
                &raw mut count,
                values.as_mut_ptr().cast(),
            )
        };
        self.api.check(&format!("{name:?}"), status)?;
        values.truncate(count.max(0) as usize);
        Ok(values)
    }

    /// Keeps `part` alive as long as this descriptor.
    pub(super) fn keep(&mut self, part: Arc<Self>) {
        self.parts.push(part);
    }

    /// The library's pointer.
    pub(super) fn raw(&self) -> *mut c_void {
        self.raw
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is alive and not used again; there is nobody to tell of a failure.
        unsafe { (self.api.destroy_descriptor)(self.raw) };
    }
}

fn data_type(element: Element) -> DataType {
    match element {
        Element::F32 => DataType::CUDNN_DATA_FLOAT,
        Element::F16 => DataType::CUDNN_DATA_HALF,
        Element::Bf16 => DataType::CUDNN_DATA_BFLOAT16,
        Element::U8 => DataType::CUDNN_DATA_UINT8,
        Element::U32 => DataType::CUDNN_DATA_INT32,
    }
}
