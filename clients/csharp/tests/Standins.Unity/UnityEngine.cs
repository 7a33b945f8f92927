#nullable enable
using System;
using System.Collections.Generic;

namespace UnityEngine
{
    public class Object
    {
        public static void Destroy(Object obj) => obj.Destroyed = true;

        public static void DontDestroyOnLoad(Object target)
        {
        }

        internal bool Destroyed { get; private set; }
    }

    public class Component : Object
    {
        public GameObject gameObject { get; internal set; } = null!;
    }

    public class Behaviour : Component
    {
    }

    public class MonoBehaviour : Behaviour
    {
    }

    public sealed class GameObject : Object
    {
        public GameObject(string name, params Type[] components)
        {
            foreach (var component in components)
            {
                ((Component)Activator.CreateInstance(component)!).gameObject = this;
            }
        }

        public T AddComponent<T>()
            where T : Component, new() => new T { gameObject = this };
    }

    public enum RuntimePlatform
    {
        OSXEditor = 0,
        WindowsPlayer = 2,
        WindowsEditor = 7,
        LinuxPlayer = 13,
        LinuxEditor = 16,
    }

    public static class Application
    {
        public static RuntimePlatform platform { get; set; } = RuntimePlatform.LinuxPlayer;

        public static string persistentDataPath { get; set; } = "";

        public static string streamingAssetsPath { get; set; } = "";

        public static string dataPath { get; set; } = "";
    }

    public static class Debug
    {
        internal static List<Exception> Exceptions { get; } = new List<Exception>();

        public static void LogException(Exception exception) => Exceptions.Add(exception);

        public static void LogException(Exception exception, Object context) => Exceptions.Add(exception);

        public static void LogError(object message) => Console.Error.WriteLine(message);

        public static void LogWarning(object message) => Console.Error.WriteLine(message);
    }

    public sealed class WaitForSeconds
    {
        public WaitForSeconds(float seconds)
        {
        }
    }

    public static class GUILayout
    {
        public static void Label(string text)
        {
        }

        public static string TextField(string text) => text;

        public static bool Button(string text) => false;
    }

    [AttributeUsage(AttributeTargets.Field)]
    public sealed class SerializeField : Attribute
    {
    }

    [AttributeUsage(AttributeTargets.Field)]
    public sealed class TooltipAttribute : Attribute
    {
        public TooltipAttribute(string tooltip)
        {
        }
    }

    [AttributeUsage(AttributeTargets.Field)]
    public sealed class MinAttribute : Attribute
    {
        public MinAttribute(float min)
        {
        }
    }

    [AttributeUsage(AttributeTargets.Class)]
    public sealed class DefaultExecutionOrder : Attribute
    {
        public DefaultExecutionOrder(int order)
        {
        }
    }

    public enum RuntimeInitializeLoadType
    {
        SubsystemRegistration,
    }

    [AttributeUsage(AttributeTargets.Method)]
    public sealed class RuntimeInitializeOnLoadMethodAttribute : Attribute
    {
        public RuntimeInitializeOnLoadMethodAttribute(RuntimeInitializeLoadType loadType)
        {
        }
    }
}

namespace UnityEngine.Events
{
    public delegate void UnityAction();

    public delegate void UnityAction<T0>(T0 arg0);

    public delegate void UnityAction<T0, T1>(T0 arg0, T1 arg1);

    public class UnityEvent
    {
        private UnityAction? calls;

        public void AddListener(UnityAction call) => calls += call;

        public void Invoke() => calls?.Invoke();
    }

    public class UnityEvent<T0>
    {
        private UnityAction<T0>? calls;

        public void AddListener(UnityAction<T0> call) => calls += call;

        public void Invoke(T0 arg0) => calls?.Invoke(arg0);
    }

    public class UnityEvent<T0, T1>
    {
        private UnityAction<T0, T1>? calls;

        public void AddListener(UnityAction<T0, T1> call) => calls += call;

        public void Invoke(T0 arg0, T1 arg1) => calls?.Invoke(arg0, arg1);
    }
}
